# The whole setup on mocks: who may do what, where messages go, and how requests leave.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789" }
  }
  mock_data "google_billing_account" {
    defaults = { currency_code = "EUR" }
  }
  mock_resource "google_compute_address" {
    defaults = { address = "203.0.113.7" }
  }
  mock_resource "google_logging_project_sink" {
    defaults = { writer_identity = "serviceAccount:sink@logging.example" }
  }
}
mock_provider "google-beta" {
  mock_resource "google_project_service_identity" {
    defaults = { member = "serviceAccount:service-123456789@agent.example" }
  }
}

variables {
  settings = {
    project     = "acme-pilotlight"
    region      = "europe-west1"
    policy_file = "../examples/civo/policy.yaml"
    clusters    = { ml = { civo = { region = "LON1", cluster_id = "c-1" } } }
    alerts      = { email = "ops@example.com", secrets = { SLACK_URL = "pilotlight-slack" } }
    functions   = { bundles = "./tests/bundles" }
    # Nothing has to be waited for here.
    wait_s = { apis = 0, rights = 0 }
  }
}

run "seven_values_deploy_all_of_it" {
  command = apply
  assert {
    condition     = toset(keys(module.function)) == toset(["pod_pending", "capacity_reconcile", "billing_tick", "spot_interruption", "alert_fanout"])
    error_message = "five functions: kueue_admission is where a cluster says kueue"
  }
  assert {
    condition     = output.secrets_to_make == tolist(["pilotlight-dev-ml-civo-token", "pilotlight-dev-ml-civo-token-read", "pilotlight-dev-ml-kubeconfig", "pilotlight-dev-ml-kubeconfig-read", "pilotlight-slack"])
    error_message = "the secrets that must exist are named"
  }
  assert {
    condition     = output.outbox == "pubsub:acme-pilotlight/pilotlight-dev" && output.topics["alerts"] == "pilotlight-dev-alerts"
    error_message = "the outbox's prefix, a hyphen and the topic make the topic's name"
  }
  assert {
    condition     = output.state == "firestore:acme-pilotlight/pilotlight-dev/pilotlight"
    error_message = "state is a database of its own"
  }
  assert {
    condition     = output.alerts == "firestore:acme-pilotlight/pilotlight-dev-alerts/pilotlight" && module.alerts_state[0].accounts == tomap({ alert_fanout = "roles/datastore.user", capacity_reconcile = "roles/datastore.viewer" })
    error_message = "alerts on their way have one too, which alert_fanout writes"
  }
  assert {
    condition     = !contains(keys(module.state.accounts), "alert_fanout") && length(module.state.accounts) == 4
    error_message = "alert_fanout has no right to what decides about money"
  }
  assert {
    condition     = toset(keys(google_storage_bucket_object.policy)) == toset(["policy.yaml", "prices.yaml"]) && google_storage_bucket.this[0].public_access_prevention == "enforced"
    error_message = "the policy and its price files are uploaded to a bucket that is never public"
  }
  assert {
    condition     = alltrue([for file in google_storage_bucket_object.policy : file.deletion_policy == "ABANDON" && strcontains(output.policy, dirname(file.name))])
    error_message = "functions read the folder that is uploaded, and an older one stays for those that still read it"
  }
}

run "requests_leave_from_addresses_that_are_printed" {
  command = apply
  assert {
    condition     = output.allow_list == ["203.0.113.7"]
    error_message = "the addresses must be printed"
  }
  assert {
    condition     = length(module.network) == 1
    error_message = "static addresses need the network"
  }
}

run "gke_by_dns_needs_no_network" {
  command = apply
  variables {
    settings = merge(var.settings, {
      clusters = { ml = { gke = { location = "europe-west1", cluster = "ml" } } }
      network  = { path = "dns-endpoint" }
    })
  }
  assert {
    condition     = length(module.network) == 0 && output.allow_list == []
    error_message = "no network with the DNS endpoint"
  }
  assert {
    condition     = length(google_project_iam_member.gke) == 4 && toset(flatten([for r in google_project_iam_custom_role.gke : r.permissions])) == toset(["container.clusters.connect", "container.clusters.get"])
    error_message = "the four functions that reach clusters may find and reach GKE clusters, and no more"
  }
  assert {
    condition     = length(google_project_iam_custom_role.pools) == 0 && length(google_project_iam_member.changes_pools) == 0
    error_message = "a cluster that is advised on only needs no right to its groups"
  }
}

run "gke_is_bought_from_by_its_own_groups" {
  command = apply
  variables {
    settings = merge(var.settings, {
      clusters = { ml = { gke = { location = "europe-west1", cluster = "ml", buys = true } } }
      network  = { path = "dns-endpoint" }
    })
  }
  assert {
    condition     = google_project_iam_custom_role.pools["acme-pilotlight/act"].permissions == toset(["compute.instanceGroupManagers.update"]) && !anytrue([for p in google_project_iam_custom_role.pools["acme-pilotlight/read"].permissions : endswith(p, ".update")])
    error_message = "what changes groups is one right of a role of its own"
  }
  assert {
    condition     = length(setsubtract(["compute.advice.capacity", "compute.advice.capacityHistory"], google_project_iam_custom_role.pools["acme-pilotlight/read"].permissions)) == 0
    error_message = "whoever looks may ask what spot costs there, and where it is soon taken"
  }
  assert {
    condition     = length(google_project_iam_member.reads_pools) == 4 && length(google_project_iam_member.changes_pools) == 3 && alltrue([for m in google_project_iam_member.changes_pools : strcontains(m.condition[0].expression, "startsWith(\"gke-ml-\")")])
    error_message = "the four functions that look read groups; the three that act change those of this cluster alone"
  }
}

run "in_cluster_makes_state_and_nothing_that_runs" {
  command = apply
  variables {
    settings = merge(var.settings, {
      network = { path = "in-cluster" }
      state   = { accounts = ["home@acme-pilotlight.iam.gserviceaccount.com"] }
    })
  }
  assert {
    condition     = module.state.accounts == tomap({ "home@acme-pilotlight.iam.gserviceaccount.com" = "roles/datastore.user" })
    error_message = "the home's account may use the database"
  }
  assert {
    condition     = length(module.function) == 0 && length(module.topic) == 0 && length(google_cloud_scheduler_job.tick) == 0 && length(google_storage_bucket.this) == 0
    error_message = "functions, topics and schedules are the cluster's"
  }
}

run "in_cluster_state_may_lie_in_a_table_of_the_callers" {
  command = apply
  variables {
    settings = merge(var.settings, { network = { path = "in-cluster" } })
    table    = "dynamodb:pilotlight-dev"
  }
  assert {
    condition     = output.state == "dynamodb:pilotlight-dev" && length(module.state.accounts) == 0
    error_message = "state is the table, and there is no database"
  }
  assert {
    condition     = !contains(keys(google_project_service.this), "firestore.googleapis.com")
    error_message = "an API that nobody needs is not enabled"
  }
}

run "functions_on_google_reach_no_table" {
  command = plan
  variables { table = "dynamodb:pilotlight-dev" }
  expect_failures = [var.table]
}

run "what_needs_another_cloud_is_refused" {
  command = plan
  variables { settings = merge(var.settings, { aws = { account_id = "123456789012", region = "eu-west-1" } }) }
  expect_failures = [var.settings]
}

run "so_is_a_table_that_nobody_makes" {
  command = plan
  variables { settings = merge(var.settings, { network = { path = "in-cluster" }, state = { dynamodb = {} } }) }
  expect_failures = [var.settings]
}

run "apis_of_the_callers_parts_are_enabled_too" {
  command = apply
  variables { apis = ["sts.googleapis.com", "iam.googleapis.com"] }
  assert {
    condition     = contains(keys(google_project_service.this), "sts.googleapis.com") && contains(terraform_data.apis.triggers_replace, "sts.googleapis.com")
    error_message = "with those that this module needs, and waited for with them"
  }
}

run "ticks_say_which_cluster_and_what_for" {
  command = apply
  assert {
    condition     = jsondecode(base64decode(google_cloud_scheduler_job.tick["ml-reconcile"].pubsub_target[0].data)) == { tick = "reconcile", cluster = "ml" }
    error_message = "the tick's message"
  }
  assert {
    condition     = google_cloud_scheduler_job.tick["ml-billing"].pubsub_target[0].attributes == tomap({ tick = "billing", cluster = "ml" })
    error_message = "subscriptions choose by attributes"
  }
}

run "a_shared_subnetwork_lets_functions_in" {
  command = apply
  variables {
    settings = merge(var.settings, { network = { existing = {
      network    = "projects/acme-net/global/networks/shared"
      subnetwork = "projects/acme-net/regions/europe-west1/subnetworks/functions"
    } } })
  }
  assert {
    condition     = google_compute_subnetwork_iam_member.shared[0].project == "acme-net" && google_compute_subnetwork_iam_member.shared[0].subnetwork == "functions" && google_compute_subnetwork_iam_member.shared[0].role == "roles/compute.networkUser"
    error_message = "Cloud Run's agent may use the host project's subnetwork"
  }
}

run "ticks_may_come_from_another_location" {
  command = apply
  variables { settings = merge(var.settings, { scheduler = "europe-west3" }) }
  assert {
    condition     = alltrue([for job in google_cloud_scheduler_job.tick : job.region == "europe-west3"])
    error_message = "where Cloud Scheduler is not in the functions' region"
  }
}

run "nobody_is_everybody" {
  command = apply
  assert {
    condition     = alltrue([for m in concat(values(google_project_iam_member.builder), values(google_project_iam_member.gke)) : !strcontains(m.member, "allUsers") && !strcontains(m.member, "allAuthenticatedUsers")])
    error_message = "no right for everybody"
  }
  assert {
    condition     = toset([for m in google_project_iam_member.builder : m.role]) == toset(["roles/logging.logWriter"]) && google_artifact_registry_repository_iam_member.builder[0].role == "roles/artifactregistry.writer"
    error_message = "who builds may push an image and log, no more"
  }
}

run "failure_and_silence_are_told" {
  command = apply
  assert {
    condition     = strcontains(google_monitoring_alert_policy.dead_letters[0].conditions[0].condition_threshold[0].filter, "pilotlight-dev-pod-events-dead")
    error_message = "every dead-letter subscription is watched"
  }
  assert {
    condition     = strcontains(google_monitoring_alert_policy.failing[0].conditions[0].condition_threshold[0].filter, "5xx")
    error_message = "failing functions are watched"
  }
  assert {
    condition     = strcontains(google_monitoring_alert_policy.silent[0].conditions[0].condition_prometheus_query_language[0].query, "service_name=\"pilotlight-dev-capacity-reconcile\"")
    error_message = "the heartbeat is watched"
  }
}

run "own_figures_are_told_where_they_arrive" {
  command = apply
  variables { settings = merge(var.settings, { alerts = { email = "ops@example.com", figures = true } }) }
  assert {
    condition     = google_monitoring_alert_policy.figures["PilotlightPaused"].conditions[0].condition_prometheus_query_language[0].query == "max by (cluster, exported_cluster, pool) (pilotlight_paused) > 0"
    error_message = "the alerts of infra/prometheus are Cloud Monitoring's"
  }
}

run "own_cost_is_watched" {
  command = apply
  variables { settings = merge(var.settings, { budget = { billing_account = "012345-6789AB-CDEF01", usd_per_month = 20 } }) }
  assert {
    condition     = google_billing_budget.own[0].amount[0].specified_amount[0].units == "20" && google_billing_budget.own[0].amount[0].specified_amount[0].currency_code == "EUR"
    error_message = "the budget is in whole units of its account's currency"
  }
}

run "a_bundle_is_rolled_back_to_by_its_hash" {
  command = apply
  variables {
    settings = merge(var.settings, {
      functions = {
        bundles     = "./tests/bundles"
        rollback_to = { pod_pending = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" }
      }
    })
  }
  assert {
    condition     = output.bundles["pod_pending"] == "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    error_message = "the named bundle is deployed"
  }
  assert {
    condition     = output.bundles["alert_fanout"] == filesha256("./tests/bundles/alert_fanout.zip")
    error_message = "the others stay as they are"
  }
}

run "a_bill_in_bigquery_is_read_by_billing_import_alone" {
  command = apply
  variables {
    settings = {
      project     = "acme-pilotlight"
      region      = "europe-west1"
      policy_file = "../examples/civo/policy.yaml"
      clusters    = { ml = { civo = { region = "LON1", cluster_id = "c-1" } } }
      alerts      = { email = "ops@example.com", secrets = { SLACK_URL = "pilotlight-slack" } }
      functions   = { bundles = "./tests/bundles" }
      bills       = "bigquery:acme-finance.focus.bill-v1"
      wait_s      = { apis = 0, rights = 0 }
    }
  }
  assert {
    condition     = google_bigquery_table_iam_member.bills[0].project == "acme-finance" && google_bigquery_table_iam_member.bills[0].dataset_id == "focus" && google_bigquery_table_iam_member.bills[0].table_id == "bill-v1" && google_bigquery_table_iam_member.bills[0].role == "roles/bigquery.dataViewer"
    error_message = "the table is read, and nothing beside it"
  }
  assert {
    condition     = google_project_iam_member.bills[0].project == "acme-finance" && google_project_iam_member.bills[0].role == "roles/bigquery.jobUser" && google_project_iam_member.bills[0].member == "serviceAccount:${module.function["billing_import"].runtime}"
    error_message = "queries run in the table's project"
  }
  assert {
    condition     = length(google_storage_notification.bills) == 0 && length(google_storage_bucket_iam_member.bills) == 0
    error_message = "no bucket is read for it"
  }
}
