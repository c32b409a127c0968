# The watchman in the cluster that a kubeconfig names.

terraform {
  required_version = ">= 1.11, < 2.0"
  required_providers {
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 2.38, < 4.0"
    }
  }
}

provider "kubernetes" {
  config_path    = "~/.kube/config"
  config_context = "ml"
}

module "watchman" {
  source = "../.."

  image = "europe-west1-docker.pkg.dev/my-project/pilotlight/home@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
}

output "objects" {
  description = "What was applied, as kind/name."
  value       = module.watchman.objects
}
