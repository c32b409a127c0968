# As dev.tfvars, which explains the values; production is a deployment of its own, with accounts and state of its own.
environment = "prod"
project     = "my-pilotlight-project"
region      = "europe-west1"
policy_file = "examples/civo/policy.yaml"
clusters = {
  ml = { civo = { region = "LON1", cluster_id = "00000000-0000-0000-0000-000000000000" } }
}
alerts = { email = "you@example.com" }
