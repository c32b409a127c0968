locals {
  # As they were given, with every default in its place.
  settings = module.plan.settings

  # In-cluster, functions and what calls them run there; state is made here.
  hosted = local.settings.network.path != "in-cluster"
  key    = try(local.settings.encryption.key, null)

  bucket = "${local.settings.project}-${module.plan.prefix}"

  # Objects that the bill may be of: from its address up to the first *, and manifests, which lie beside data/.
  bills_bucket = local.hosted ? try(regex("^focus:gs://([^/]+)/", local.settings.bills)[0], null) : null
  bills_table  = local.hosted ? try(regex("^bigquery:(?P<project>.+)\\.(?P<dataset>\\w+)\\.(?P<table>[\\w-]+)$", local.settings.bills), null) : null
  bills_prefix = try(replace(regex("^focus:gs://[^/]+/([^*]*)", local.settings.bills)[0], "/(^|/)data/.*$/", "$1"), "")

  # The policy and the price files it names lie in one folder, named by what is in them: functions see a change at once.
  policy_files = merge(
    { "policy.yaml" = local.settings.policy_file },
    { for name in try(yamldecode(file(local.settings.policy_file)).prices.files, []) : name => "${dirname(local.settings.policy_file)}/${name}" },
  )
  policy_folder = "policy/${sha256(join("", [for path in values(local.policy_files) : filesha256(path)]))}"
  policy_uri    = "gs://${local.bucket}/${local.policy_folder}/policy.yaml"

  functions = local.hosted ? module.plan.functions : {}
  topics    = { for name, topic in module.topic : name => { id = topic.id, name = topic.name, dead_id = topic.dead_id } }
}

module "plan" {
  source = "../modules/plan"

  settings   = var.settings
  policy_uri = local.policy_uri
  state_uri  = local.state_uri
  alerts_uri = try(module.alerts_state[0].uri, null)
}
