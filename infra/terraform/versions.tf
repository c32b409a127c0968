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
  project = var.project
  region  = var.region
}

# Configured even where nothing of AWS is asked for, so it must then ask for no account.
provider "aws" {
  region                      = try(var.aws.region, "us-east-1")
  access_key                  = local.uses_aws ? null : "unused"
  secret_key                  = local.uses_aws ? null : "unused"
  skip_credentials_validation = !local.uses_aws
  skip_metadata_api_check     = !local.uses_aws
  skip_requesting_account_id  = !local.uses_aws
}
