# What a deployment will be called and will do, without any cloud: terraform apply changes nothing but outputs.

module "plan" {
  source = "../.."

  policy_uri = "gs://my-policies/policy.yaml"
  state_uri  = "firestore:my-pilotlight-project/pilotlight-dev/pilotlight"
  settings = {
    project     = "my-pilotlight-project"
    region      = "europe-west1"
    policy_file = "../../../../examples/civo/policy.yaml"
    clusters    = { ml = { gke = { location = "europe-west1", cluster = "ml" } } }
    alerts      = { email = "you@example.com" }
    functions   = { bundles = "../../../../../../build" }
  }
}

output "functions" {
  description = "Each function's name, account, environment, secrets and subscriptions."
  value       = module.plan.functions
}
