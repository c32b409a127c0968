# A table for state, and the policy that a role needs to use it.

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

module "aws_table" {
  source = "../.."

  name = "pilotlight-dev"
}

output "state" {
  description = "PILOTLIGHT_STATE."
  value       = module.aws_table.uri
}
