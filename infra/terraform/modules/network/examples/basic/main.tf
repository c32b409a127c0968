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

  name      = "pilotlight-dev"
  instances = 15
  settings = {
    project = "my-pilotlight-project"
    region  = "europe-west1"
    network = { cidr = "10.8.0.0/26", addresses = 1 }
  }
}

output "allow_list" {
  description = "Let these through."
  value       = module.network.addresses
}
