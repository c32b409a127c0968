# One function of a bundle that `make package` made, called by what comes on one topic.

terraform {
  required_version = ">= 1.11, < 2.0"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 8.0, < 9.0"
    }
  }
}

provider "google" {
  project = "my-pilotlight-project"
  region  = "europe-west1"
}

resource "google_pubsub_topic" "pods" {
  #checkov:skip=CKV_GCP_83:an example; the messages are hints
  for_each = toset(["pod-events", "pod-events-dead", "alerts"])

  name = each.key
}

module "plan" {
  source = "../../../plan"

  project     = "my-pilotlight-project"
  name        = "pilotlight"
  environment = "dev"
  policy_uri  = "gs://my-bundles/policy/policy.yaml"
  state_uri   = "firestore:my-pilotlight-project/pilotlight-dev/pilotlight"
  clusters    = { ml = {} }
}

module "pod_pending" {
  source = "../.."

  project   = "my-pilotlight-project"
  region    = "europe-west1"
  function  = "pod_pending"
  plan      = merge(module.plan.functions["pod_pending"], { publishes = ["alerts"] })
  bundle    = { file = "../../../../../../build/pod_pending.zip" }
  bucket    = "my-bundles"
  builder   = "projects/my-pilotlight-project/serviceAccounts/build@my-pilotlight-project.iam.gserviceaccount.com"
  agent     = "serviceAccount:service-123456789@gcp-sa-pubsub.iam.gserviceaccount.com"
  backoff_s = { min = 10, max = 600 }
  size      = { memory = "512Mi", min_instances = 0, max_instances = 3, concurrency = 8 }
  topics = {
    pod-events = {
      id      = google_pubsub_topic.pods["pod-events"].id
      name    = google_pubsub_topic.pods["pod-events"].name
      dead_id = google_pubsub_topic.pods["pod-events-dead"].id
    }
    alerts = { id = google_pubsub_topic.pods["alerts"].id, name = google_pubsub_topic.pods["alerts"].name }
  }
}

output "bundle" {
  description = "What a later rollback names."
  value       = module.pod_pending.bundle
}
