# Fixed addresses for the firewall of an API server.

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

module "network" {
  source = "../.."

  project   = "my-pilotlight-project"
  region    = "europe-west1"
  name      = "pilotlight-dev"
  cidr      = "10.8.0.0/26"
  addresses = 1
  instances = 15
}

output "allow_list" {
  description = "Let these through."
  value       = module.network.addresses
}
