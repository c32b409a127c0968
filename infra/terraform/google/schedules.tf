# Two ticks a minute for each cluster: one to look at its nodes, one to count money; and one for its bill, if there is one.

resource "google_cloud_scheduler_job" "tick" {
  for_each = local.hosted ? module.plan.schedules : {}

  project   = local.settings.project
  region    = coalesce(local.settings.scheduler, local.settings.region)
  name      = each.value.name
  schedule  = each.value.cron
  time_zone = "Etc/UTC"

  pubsub_target {
    topic_name = module.topic["ticks"].id
    data       = base64encode(jsonencode({ tick = each.value.tick, cluster = each.value.cluster }))
    attributes = { tick = each.value.tick, cluster = each.value.cluster }
  }

  retry_config {
    retry_count = 1
  }

  depends_on = [terraform_data.apis]
}
