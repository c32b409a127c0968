# A database for state, which one account writes and another reads.

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

module "state" {
  source = "../.."

  project  = "my-pilotlight-project"
  name     = "pilotlight-dev"
  location = "europe-west1"
  writers  = { home = "home@my-pilotlight-project.iam.gserviceaccount.com" }
  readers  = { report = "report@my-pilotlight-project.iam.gserviceaccount.com" }
}

output "state" {
  description = "PILOTLIGHT_STATE."
  value       = module.state.uri
}
