# What the root adds to the module beside it: what `make` gives, and what an earlier deployment left behind.

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

# Mocks have nothing that could be imported: this stands for what was left behind.
override_resource {
  target = module.pilotlight.aws_dynamodb_table.this
}

variables {
  region = "eu-west-1"
  settings = {
    policy_file = "../../examples/eks/policy.yaml"
    clusters    = { ml = { eks = { cluster = "prod" } } }
    alerts      = { email = "ops@example.com" }
    functions   = { bundles = "../tests/bundles" }
    environment = "test"
  }
}

run "settings_say_which_deployment_it_is" {
  command = plan
  assert {
    condition     = output.prefix == "pilotlight-test"
    error_message = "the environment of settings"
  }
}

run "what_make_gives_stands_before_them" {
  command = plan
  variables {
    environment = "prod"
    protected   = false
    adopt       = true
  }
  assert {
    condition     = output.prefix == "pilotlight-prod"
    error_message = "the environment that make gives"
  }
}

run "a_zone_is_no_region" {
  command = plan
  variables { region = "eu-west-1a" }
  expect_failures = [var.region]
}
