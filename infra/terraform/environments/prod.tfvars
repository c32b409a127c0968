# Production is a deployment of its own: a project, a policy, a cluster and accounts of its own, and state that nothing
# else writes. dev.tfvars explains the values.
settings = {
  environment = "prod"
  project     = "my-pilotlight-prod"
  region      = "europe-west1"
  policy_file = "../../my-civo/prod.yaml"
  clusters = {
    prod = { civo = { region = "LON1", cluster_id = "11111111-1111-1111-1111-111111111111" } }
  }
  alerts = { email = "oncall@example.com" }
}
