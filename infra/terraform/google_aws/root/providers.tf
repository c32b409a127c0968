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

# What is wrong in settings is told by modules/settings alone.
locals {
  project = try(var.settings.project, null)
}

# Budgets are asked of the billing account in the name of a project: without the last two lines Google refuses a person's
# own credentials there.
provider "google" {
  project               = local.project
  region                = try(var.settings.region, null)
  default_labels        = var.labels
  user_project_override = true
  billing_project       = local.project
}

provider "google-beta" {
  project               = local.project
  region                = try(var.settings.region, null)
  user_project_override = true
  billing_project       = local.project
}

# Credentials are those of your shell (`aws sts get-caller-identity`); of another account than settings name they are refused:
# Google would believe none of its events.
provider "aws" {
  region              = try(var.settings.aws.region, null)
  allowed_account_ids = try([var.settings.aws.account_id], null)

  default_tags {
    tags = var.labels
  }
}
