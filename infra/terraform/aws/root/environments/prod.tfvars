# Production is a deployment of its own: a policy, a cluster, roles and tables of its own. dev.tfvars explains the values.
region = "eu-west-1"
settings = {
  environment = "prod"
  policy_file = "../../../../my-eks/prod.yaml"
  clusters    = { prod = { eks = { cluster = "prod-gpu" } } }
  alerts      = { email = "oncall@example.com" }
}
