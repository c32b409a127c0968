# Who watches the watchman: dead letters, failing functions, and a heartbeat that stops.

locals {
  watched = local.hosted ? 1 : 0
  # Written by scripts/dashboards.py from infra/prometheus/rules.yaml.
  own_figures = local.settings.alerts.figures ? jsondecode(file("${path.module}/alerts.json")) : {}
  cloud_run = join(" AND ", [
    "resource.type = \"cloud_run_revision\"", "metric.type = \"run.googleapis.com/request_count\""
  ])
  silent = join("", [
    "absent(sum(increase(run_googleapis_com:request_count{",
    "monitored_resource=\"cloud_run_revision\",response_code_class=\"2xx\",",
    "service_name=\"${module.plan.functions["capacity_reconcile"].name}\"}[5m])) > 0)",
  ])
  runbook = "docs/guides/runbook.md in Pilotlight's repository says what to do."
}

resource "google_monitoring_notification_channel" "email" {
  count = local.hosted || local.settings.alerts.figures ? 1 : 0

  project      = local.settings.project
  display_name = "Pilotlight ${local.settings.environment}"
  type         = "email"
  labels       = { email_address = local.settings.alerts.email }

  depends_on = [terraform_data.apis]
}

resource "google_monitoring_alert_policy" "dead_letters" {
  count = local.watched

  project               = local.settings.project
  display_name          = "${module.plan.prefix}: dead letters"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = google_monitoring_notification_channel.email[*].id

  conditions {
    display_name = "Messages that nobody could take"

    condition_threshold {
      filter = join(" AND ", [
        "resource.type = \"pubsub_subscription\"",
        "metric.type = \"pubsub.googleapis.com/subscription/num_undelivered_messages\"",
        "resource.label.subscription_id = one_of(${join(", ", formatlist("\"%s\"", flatten([for topic in module.topic : topic.kept_names])))})",
      ])
      comparison      = "COMPARISON_GT"
      threshold_value = 0
      duration        = "0s"

      aggregations {
        alignment_period   = "60s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Events wait in a dead-letter subscription. ${local.runbook}"
  }

  depends_on = [terraform_data.apis]
}

resource "google_monitoring_alert_policy" "failing" {
  count = local.watched

  project               = local.settings.project
  display_name          = "${module.plan.prefix}: a function fails"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = google_monitoring_notification_channel.email[*].id

  conditions {
    display_name = "More than three 5xx answers in five minutes, twice in a row"

    condition_threshold {
      filter = join(" AND ", [
        local.cloud_run, "metric.label.response_code_class = \"5xx\"",
        "resource.label.service_name = starts_with(\"${module.plan.prefix}-\")",
      ])
      comparison      = "COMPARISON_GT"
      threshold_value = 3
      duration        = "300s"

      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = "ALIGN_DELTA"
        cross_series_reducer = "REDUCE_SUM"
        group_by_fields      = ["resource.label.service_name"]
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "A function answers with errors; Pub/Sub tries again, then dead-letters. ${local.runbook}"
  }

  depends_on = [terraform_data.apis]
}

resource "google_monitoring_alert_policy" "silent" {
  count = local.watched

  project               = local.settings.project
  display_name          = "${module.plan.prefix}: no heartbeat"
  combiner              = "OR"
  severity              = "CRITICAL"
  notification_channels = google_monitoring_notification_channel.email[*].id

  conditions {
    display_name = "No tick was answered for ten minutes"

    # Nothing is there to compare where no tick was ever answered: absent() tells of that too.
    condition_prometheus_query_language {
      query                     = local.silent
      duration                  = "300s"
      evaluation_interval       = "60s"
      disable_metric_validation = true
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "Nothing scales up or down now, and nodes that are lit stay lit. ${local.runbook}"
  }

  depends_on = [terraform_data.apis]
}

# The same alerts as those of infra/prometheus, where Pilotlight's figures reach Cloud Monitoring.
resource "google_monitoring_alert_policy" "figures" {
  for_each = local.own_figures

  project               = local.settings.project
  display_name          = "${module.plan.prefix}: ${each.key}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = google_monitoring_notification_channel.email[*].id

  conditions {
    display_name = each.key

    condition_prometheus_query_language {
      query                     = each.value.query
      duration                  = each.value.duration
      evaluation_interval       = "60s"
      alert_rule                = each.key
      rule_group                = "pilotlight-own"
      disable_metric_validation = true
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "${each.value.documentation} ${local.runbook}"
  }

  depends_on = [terraform_data.apis]
}

# A budget is in the currency of its billing account: Google refuses any other.
data "google_billing_account" "own" {
  count = local.settings.budget == null || !local.hosted ? 0 : 1

  billing_account = local.settings.budget.billing_account

  depends_on = [terraform_data.apis]
}

# Google counts what Pilotlight itself costs, and tells billing_tick at intervals.
resource "google_billing_budget" "own" {
  count = local.settings.budget == null || !local.hosted ? 0 : 1

  billing_account = local.settings.budget.billing_account
  display_name    = "${module.plan.prefix}: Pilotlight itself"

  budget_filter {
    projects = ["projects/${data.google_project.this.number}"]
  }

  amount {
    specified_amount {
      currency_code = data.google_billing_account.own[0].currency_code
      units         = tostring(local.settings.budget.usd_per_month)
    }
  }

  dynamic "threshold_rules" {
    for_each = [0.5, 0.8, 1]
    content {
      threshold_percent = threshold_rules.value
    }
  }

  all_updates_rule {
    pubsub_topic                     = module.topic["billing"].id
    monitoring_notification_channels = google_monitoring_notification_channel.email[*].id
  }

  depends_on = [terraform_data.apis]
}
