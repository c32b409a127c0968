# An AWS account's spot warnings and failed launches, on topics at Google.

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
  }
}

provider "google" {
  project = "my-pilotlight-project"
  region  = "europe-west1"
}

provider "aws" {
  region = "eu-west-1"
}

resource "google_pubsub_topic" "into" {
  #checkov:skip=CKV_GCP_83:an example; the messages are hints
  for_each = toset(["interruptions", "capacity-failures"])

  name = each.key
}

module "aws_bridge" {
  source = "../.."

  settings = {
    project   = "my-pilotlight-project"
    aws       = { account_id = "123456789012", region = "eu-west-1" }
    functions = { bundles = "../../../../../../build" }
  }
  name   = "pilotlight-dev"
  topics = { for name, topic in google_pubsub_topic.into : name => { id = topic.id, name = topic.name } }
}

output "rules" {
  description = "What is sent on."
  value       = module.aws_bridge
}
