# One deployment with all that can be asked for at once; tests/infra/terraform/terraform_rules.py reads the state that it leads to.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789" }
  }
  mock_data "google_storage_project_service_account" {
    defaults = { member = "serviceAccount:service-123456789@gs-project-accounts.iam.gserviceaccount.com" }
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
    clusters = {
      ml    = { civo = { region = "LON1", cluster_id = "c-1" } }
      batch = { gke = { location = "europe-west1", cluster = "batch", project = "acme-clusters", buys = true, queue = true }, kueue = true, reclaim = true }
      aks   = { karpenter = { limits = true, claims = true } }
    }
    alerts     = { email = "ops@example.com", secrets = { SLACK_URL = "pilotlight-slack" }, figures = true }
    functions  = { bundles = "./tests/bundles" }
    budget     = { billing_account = "012345-6789AB-CDEF01", usd_per_month = 20 }
    telemetry  = "https://monitoring.googleapis.com/v1/projects/acme-metrics/location/global/prometheus"
    bills      = "focus:gs://acme-bills/export/*.parquet"
    audit      = { bucket = "acme-audit", account = "exporter@acme-audit.iam.gserviceaccount.com", project = "acme-audit" }
    encryption = { key = "projects/acme-keys/locations/europe-west1/keyRings/r/cryptoKeys/k" }
    wait_s     = { apis = 0, rights = 0 }
  }
}

run "all_of_it" {
  command = apply
  assert {
    condition     = length(google_kms_crypto_key_iam_member.agent) == 7
    error_message = "Pub/Sub, Firestore, storage, images, secrets, functions and what runs them encrypt with the key"
  }
  assert {
    condition     = google_storage_bucket_iam_member.bills[0].bucket == "acme-bills" && google_storage_bucket_iam_member.bills[0].role == "roles/storage.objectViewer"
    error_message = "billing_import reads the bucket of the bill"
  }
  assert {
    condition     = google_storage_notification.bills[0].bucket == "acme-bills" && google_storage_notification.bills[0].object_name_prefix == "export/" && google_storage_notification.bills[0].topic == module.topic["bills"].id && google_storage_notification.bills[0].event_types == toset(["OBJECT_FINALIZE"])
    error_message = "the bucket of the bill says on the topic bills when a file below its prefix is written, and of no other object"
  }
  assert {
    condition     = google_pubsub_topic_iam_member.bills[0].role == "roles/pubsub.publisher" && google_pubsub_topic_iam_member.bills[0].member == "serviceAccount:service-123456789@gs-project-accounts.iam.gserviceaccount.com"
    error_message = "Cloud Storage may publish that"
  }
  assert {
    condition     = google_project_iam_member.telemetry[0].project == "acme-metrics" && google_project_iam_member.telemetry[0].role == "roles/monitoring.viewer"
    error_message = "billing_tick reads the metrics of the project that has the GPUs' series"
  }
  assert {
    condition     = module.plan.sinks["batch-quota-reserved"].topic == "workload-events" && contains(keys(module.function), "kueue_admission")
    error_message = "where a cluster says kueue, work that has its quota reaches kueue_admission"
  }
  assert {
    condition     = toset([for m in google_project_iam_member.gke : m.project]) == toset(["acme-clusters"])
    error_message = "who asks where clusters are asks in the clusters' project"
  }
  assert {
    condition     = strcontains(output.connect["batch"], "pilotlight connect --context batch --act --gke-queue --kueue --reclaim --policy") && length(split("--actor", output.connect["batch"])) == 9 && length(split("--reader", output.connect["batch"])) == 3
    error_message = "what lets the functions into a GKE cluster is told, for each account by e-mail and number"
  }
}
