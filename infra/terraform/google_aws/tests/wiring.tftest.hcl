# What is at AWS beside google/: the bridge or the table, each where settings ask for it.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789" }
  }
}
mock_provider "google-beta" {
  mock_resource "google_project_service_identity" {
    defaults = { member = "serviceAccount:service-123456789@agent.example" }
  }
}
mock_provider "aws" {
  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:bridge" }
  }
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:eu-west-1:123456789012:dead", url = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead" }
  }
  mock_resource "aws_iam_policy" {
    defaults = { arn = "arn:aws:iam::123456789012:policy/pilotlight-dev-state" }
  }
}

variables {
  settings = {
    project     = "acme-pilotlight"
    region      = "europe-west1"
    policy_file = "../examples/eks/policy.yaml"
    clusters    = { ml = {} }
    alerts      = { email = "ops@example.com" }
    functions   = { bundles = "./tests/bundles" }
    aws         = { account_id = "123456789012", region = "eu-west-1" }
    # Nothing has to be waited for here.
    wait_s = { apis = 0, rights = 0 }
  }
}

run "events_of_an_account_come_over_a_bridge" {
  command = apply
  assert {
    condition     = length(module.aws_bridge) == 1 && length(module.aws_table) == 0
    error_message = "with an AWS account there is a bridge, and no table"
  }
  assert {
    condition     = output.topics["interruptions"] == "pilotlight-dev-interruptions" && output.state == "firestore:acme-pilotlight/pilotlight-dev/pilotlight"
    error_message = "the rest is as without it"
  }
}

run "without_an_account_there_is_no_bridge" {
  command = plan
  variables { settings = merge(var.settings, { aws = null }) }
  assert {
    condition     = length(module.aws_bridge) == 0 && length(module.aws_table) == 0
    error_message = "what is not asked for is not made"
  }
}

run "in_cluster_state_lies_in_a_table" {
  command = apply
  variables {
    settings = merge(var.settings, {
      network = { path = "in-cluster" }
      state   = { dynamodb = {} }
    })
  }
  assert {
    condition     = output.state == "dynamodb:pilotlight-dev" && output.dynamodb_policy == "arn:aws:iam::123456789012:policy/pilotlight-dev-state"
    error_message = "state is the table, and the policy that a role needs is told"
  }
  assert {
    condition     = length(module.aws_bridge) == 0
    error_message = "in-cluster, events are taken there"
  }
}
