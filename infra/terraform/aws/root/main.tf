# What is deployed is the module beside this folder, which says what each value means and refuses what is wrong. Here are
# only the provider, and what Terraform allows in a root alone.

module "pilotlight" {
  source = "../"

  name        = var.name
  environment = var.environment
  policy_file = var.policy_file
  clusters    = var.clusters
  alerts      = var.alerts
  protected   = var.protected
  functions   = var.functions
  network     = var.network
  bills       = var.bills
  telemetry   = var.telemetry
  budget      = var.budget
  audit       = var.audit
  encryption  = var.encryption
}

# Tables that an earlier deployment left behind, because its Terraform state was lost, are taken over.
import {
  for_each = var.adopt ? toset(["state", "alerts"]) : []
  id       = "${var.name}-${var.environment}-${each.key}"
  to       = module.pilotlight.aws_dynamodb_table.this[each.key]
}
