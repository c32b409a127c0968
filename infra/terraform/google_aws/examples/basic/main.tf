# State of a home inside a cluster at EKS, in a DynamoDB table: no function runs at Google.

terraform {
  required_version = ">= 1.11, < 2.0"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
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
}

provider "google-beta" {
  project = "my-pilotlight-project"
}

provider "aws" {
  region = "eu-west-1"
}

module "pilotlight" {
  source = "../.."

  settings = {
    project     = "my-pilotlight-project"
    region      = "europe-west1"
    policy_file = "../../../examples/eks/policy.yaml"
    clusters    = { ml = {} }
    alerts      = { email = "you@example.com" }
    network     = { path = "in-cluster" }
    state       = { dynamodb = {} }
    aws         = { account_id = "123456789012", region = "eu-west-1" }
  }
}

output "dynamodb_policy" {
  description = "Attach it to the role that the home runs as."
  value       = module.pilotlight.dynamodb_policy
}
