module "topic" {
  source   = "../modules/topic"
  for_each = local.hosted ? module.plan.topics : {}

  project      = local.settings.project
  name         = "${module.plan.prefix}-${each.key}"
  agent        = local.pubsub_agent
  dead_letters = each.value.dead_letters
  kept         = each.value.kept
  schema       = each.key == "ticks" ? local.tick_schema : null
  kms_key      = local.key

  depends_on = [terraform_data.apis, google_kms_crypto_key_iam_member.agent]
}

locals {
  # Ticks are the one message whose sender is made here; others come from outside, in the shapes of their senders.
  tick_schema = {
    name = module.plan.name_of_ticks_schema
    avro = jsonencode({
      type = "record"
      name = "Tick"
      fields = [
        { name = "tick", type = "string" },
        { name = "cluster", type = "string" },
      ]
    })
  }
}

module "cluster_events" {
  source = "../modules/cluster_events"
  count  = local.hosted ? 1 : 0

  project = local.settings.project
  sinks   = module.plan.sinks
  topics  = local.topics
}
