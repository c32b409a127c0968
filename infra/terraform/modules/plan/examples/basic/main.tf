# What a deployment will be called and will do, without any cloud: terraform apply changes nothing but outputs.

module "plan" {
  source = "../.."

  project     = "my-pilotlight-project"
  name        = "pilotlight"
  environment = "dev"
  policy_uri  = "gs://my-policies/policy.yaml"
  state_uri   = "firestore:my-pilotlight-project/pilotlight-dev/pilotlight"
  clusters    = { ml = { gke = { location = "europe-west1", cluster = "ml" } } }
}

output "functions" {
  description = "Each function's name, account, environment, secrets and subscriptions."
  value       = module.plan.functions
}
