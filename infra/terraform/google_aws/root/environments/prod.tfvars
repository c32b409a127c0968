# Production is a deployment of its own: a project, an AWS account, a policy, a cluster, and state that nothing else writes.
# dev.tfvars explains the values.
settings = {
  environment = "prod"
  project     = "my-pilotlight-prod"
  region      = "europe-west1"
  policy_file = "../../../../my-eks/prod.yaml"
  clusters    = { prod = {} }
  alerts      = { email = "oncall@example.com" }
  aws         = { account_id = "210987654321", region = "eu-west-1" }
}
