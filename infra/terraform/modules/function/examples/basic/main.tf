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

  policy_uri = "gs://my-bundles/policy/policy.yaml"
  state_uri  = "firestore:my-pilotlight-project/pilotlight-dev/pilotlight"
  settings = {
    project     = "my-pilotlight-project"
    region      = "europe-west1"
    policy_file = "../../../../examples/civo/policy.yaml"
    clusters    = { ml = {} }
    alerts      = { email = "you@example.com" }
    functions   = { bundles = "../../../../../../build" }
  }
}

module "pod_pending" {
  source = "../.."

  settings   = module.plan.settings
  function   = "pod_pending"
  plan       = merge(module.plan.functions["pod_pending"], { publishes = ["alerts"] })
  bucket     = "my-bundles"
  repository = "projects/my-pilotlight-project/locations/europe-west1/repositories/pilotlight-dev"
  builder    = "projects/my-pilotlight-project/serviceAccounts/build@my-pilotlight-project.iam.gserviceaccount.com"
  agent      = "serviceAccount:service-123456789@gcp-sa-pubsub.iam.gserviceaccount.com"
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
