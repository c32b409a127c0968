# A deployment for one EKS cluster of this region.

terraform {
  required_version = ">= 1.11, < 2.0"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
  }
}

provider "aws" {
  region = "eu-west-1"
}

module "pilotlight" {
  source = "../.."

  settings = {
    policy_file = "../../../examples/eks/policy.yaml"
    clusters    = { ml = { eks = { cluster = "prod" } } }
    alerts      = { email = "you@example.com" }
    functions   = { bundles = var.bundles }
  }
}

variable "bundles" {
  description = "The folder that `make package CLOUD=aws` writes."
  type        = string
  default     = "../../../../../build"
}

output "connect" {
  description = "What lets the functions into the cluster."
  value       = module.pilotlight.connect
}
