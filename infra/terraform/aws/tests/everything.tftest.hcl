# One deployment with all that can be asked for, from which the rules of tests/infra read every instance.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { region = "eu-west-1" }
  }
}

variables {
  settings = {
    policy_file = "../examples/eks/policy.yaml"
    clusters    = { ml = { eks = { cluster = "prod" }, kueue = true, reclaim = true, karpenter = { limits = true, claims = true } }, edge = {} }
    alerts      = { email = "ops@example.com", secrets = { SLACK_URL = "pilotlight-slack" } }
    functions   = { bundles = "./tests/bundles" }
    network     = { subnets = ["subnet-1"], security_groups = ["sg-1"] }
    budget      = { usd_per_month = 20 }
    telemetry   = "https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1234abcd"
    bills       = "focus:s3://acme-bills/focus/*.parquet"
    audit       = { bucket = "acme-audit" }
    encryption  = { key = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab" }
  }
}

run "everything" {
  command = apply
}
