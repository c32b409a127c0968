# A topic whose undelivered messages are kept for two weeks.

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

module "alerts" {
  source = "../.."

  project      = "my-pilotlight-project"
  name         = "pilotlight-dev-alerts"
  agent        = "serviceAccount:service-123456789@gcp-sa-pubsub.iam.gserviceaccount.com"
  dead_letters = true
}

output "kept" {
  description = "Subscriptions that hold messages until a person has read them."
  value       = module.alerts.kept_names
}
