locals {
  # In-cluster, functions and what calls them run there; state is made here.
  hosted    = var.network.path != "in-cluster"
  uses_aws  = var.aws != null
  firestore = var.state.dynamodb == null
  key       = try(var.encryption.key, null)

  bucket = "${var.project}-${var.name}-${var.environment}"

  # The policy and the price files it names lie in one folder, named by what is in them: functions see a change at once.
  policy_files = merge(
    { "policy.yaml" = var.policy_file },
    { for name in try(yamldecode(file(var.policy_file)).prices.files, []) : name => "${dirname(var.policy_file)}/${name}" },
  )
  policy_folder = "policy/${sha256(join("", [for path in values(local.policy_files) : filesha256(path)]))}"
  policy_uri    = "gs://${local.bucket}/${local.policy_folder}/policy.yaml"

  functions = local.hosted ? module.plan.functions : {}
  topics    = { for name, topic in module.topic : name => { id = topic.id, name = topic.name, dead_id = topic.dead_id } }
}

module "plan" {
  source = "../modules/plan"

  project         = var.project
  name            = var.name
  environment     = var.environment
  clusters        = var.clusters
  policy_uri      = local.policy_uri
  state_uri       = module.state.uri
  alerts_uri      = try(module.alerts_state[0].uri, null)
  bills           = var.bills
  telemetry       = var.telemetry
  channel_secrets = var.alerts.secrets
  timeout_s       = var.functions.timeout_s
  backoff_s       = var.functions.backoff_s
}
