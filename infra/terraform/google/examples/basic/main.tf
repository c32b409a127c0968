# A deployment for a GKE cluster in another project, reached by its DNS endpoint.

terraform {
  required_version = ">= 1.11, < 2.0"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 8.0, < 9.0"
    }
    google-beta = {
      source  = "hashicorp/google-beta"
      version = ">= 8.0, < 9.0"
    }
  }
}

provider "google" {
  project               = "my-pilotlight-project"
  user_project_override = true
  billing_project       = "my-pilotlight-project"
  default_labels        = { team = "ml" }
}

provider "google-beta" {
  project = "my-pilotlight-project"
}

module "pilotlight" {
  source = "../.."

  settings = {
    project     = "my-pilotlight-project"
    region      = "europe-west1"
    policy_file = "../../../examples/civo/policy.yaml"
    clusters    = { ml = { gke = { location = "europe-west1", cluster = "ml", project = "my-clusters" } } }
    alerts      = { email = "you@example.com" }
    network     = { path = "dns-endpoint" }
    functions   = { bundles = "../../../../../build" }
  }
}

output "connect" {
  description = "What lets the functions into the cluster."
  value       = module.pilotlight.connect
}
