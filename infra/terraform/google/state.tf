# What alert_fanout needs is a database of its own: it faces outward, and may not touch what decides about money.

module "state" {
  source = "../modules/state"

  project   = local.settings.project
  name      = module.plan.prefix
  protected = local.settings.protected
  kms_key   = local.key
  writers = merge(
    { for function, made in module.function : function => made.runtime if function != "alert_fanout" },
    { for email in local.settings.state.accounts : email => email },
  )
  # Whoever carries the audit chain out.
  readers  = local.settings.audit == null ? {} : { audit = local.settings.audit.account }
  location = local.location

  depends_on = [terraform_data.apis, google_kms_crypto_key_iam_member.agent]
}

module "alerts_state" {
  source = "../modules/state"
  count  = local.hosted ? 1 : 0

  project   = local.settings.project
  name      = "${module.plan.prefix}-alerts"
  protected = local.settings.protected
  kms_key   = local.key
  writers   = { alert_fanout = module.function["alert_fanout"].runtime }
  # It looks whether an alert waits, and wakes alert_fanout.
  readers  = { capacity_reconcile = module.function["capacity_reconcile"].runtime }
  location = local.location

  depends_on = [terraform_data.apis, google_kms_crypto_key_iam_member.agent]
}

locals {
  # There is no database where state lies in a table of the caller's.
  location  = var.table != null ? null : coalesce(try(local.settings.state.firestore.location, null), local.settings.region)
  state_uri = var.table != null ? var.table : module.state.uri
}
