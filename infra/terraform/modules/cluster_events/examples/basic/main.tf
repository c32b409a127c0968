# What GKE logs of pods that cannot be scheduled, on a topic.

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
  name = "pod-events"
}

module "cluster_events" {
  source = "../.."

  project = "my-pilotlight-project"
  topics  = { pod-events = { id = google_pubsub_topic.pods.id, name = google_pubsub_topic.pods.name } }
  sinks = {
    failed = {
      project = "my-clusters"
      name    = "failed-scheduling"
      topic   = "pod-events"
      filter  = "log_id(\"events\") AND jsonPayload.reason=\"FailedScheduling\""
    }
  }
}

output "filters" {
  description = "What is sent on."
  value       = module.cluster_events.filters
}
