# What a deployment on AWS is told, with every default: terraform apply changes nothing but outputs.

locals {
  given = {
    policy_file = "../../../../examples/eks/policy.yaml"
    clusters    = { ml = { eks = { cluster = "prod" } } }
    alerts      = { email = "you@example.com" }
    functions   = { bundles = "../../../../../../build" }
  }
}

module "settings" {
  source = "../.."

  aws   = local.given
  given = local.given
}

output "settings" {
  description = "What was written, and every default."
  value       = module.settings.settings
}
