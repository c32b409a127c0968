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

# Budgets are asked of the billing account in the name of a project: without the last two lines Google refuses a person's
# own credentials there.
provider "google" {
  project               = var.project
  region                = var.region
  default_labels        = var.labels
  user_project_override = true
  billing_project       = var.project
}

provider "google-beta" {
  project               = var.project
  region                = var.region
  user_project_override = true
  billing_project       = var.project
}

# Configured even where nothing of AWS is asked for, so it must then ask for no account.
provider "aws" {
  region                      = try(var.aws.region, "us-east-1")
  access_key                  = var.aws == null ? "unused" : null
  secret_key                  = var.aws == null ? "unused" : null
  skip_credentials_validation = var.aws == null
  skip_metadata_api_check     = var.aws == null
  skip_requesting_account_id  = var.aws == null

  default_tags {
    tags = var.labels
  }
}
