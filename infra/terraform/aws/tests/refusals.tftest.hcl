# What is wrong is said before anything is made.

mock_provider "aws" {}

variables {
  policy_file = "../examples/eks/policy.yaml"
  clusters    = { ml = { eks = { cluster = "prod" } } }
  alerts      = { email = "ops@example.com" }
  functions   = { bundles = "./tests/bundles" }
}

run "a_policy_that_is_not_there" {
  command = plan
  variables {
    policy_file = "none.yaml"
  }
  expect_failures = [var.policy_file]
}

run "no_cluster" {
  command = plan
  variables {
    clusters = {}
  }
  expect_failures = [var.clusters]
}

run "a_name_that_keys_cannot_hold" {
  command = plan
  variables {
    clusters = { "ML/1" = {} }
  }
  expect_failures = [var.clusters]
}

run "a_mode_there_is_not" {
  command = plan
  variables {
    clusters = { ml = { mode = "go" } }
  }
  expect_failures = [var.clusters]
}

run "a_schedule_as_cron_writes_it" {
  command = plan
  variables {
    clusters = { ml = { reconcile = "* * * * *" } }
  }
  expect_failures = [var.clusters]
}

run "nobody_who_hears" {
  command = plan
  variables {
    alerts = { email = "ops" }
  }
  expect_failures = [var.alerts]
}

run "a_secret_under_a_name_of_lambdas_own" {
  command = plan
  variables {
    alerts = { email = "ops@example.com", secrets = { AWS_REGION = "x" } }
  }
  expect_failures = [var.alerts]
}

run "bundles_that_were_not_built" {
  command = plan
  variables {
    functions = { bundles = "./tests" }
  }
  expect_failures = [var.functions]
}

run "a_bill_that_lies_elsewhere" {
  command = plan
  variables {
    bills = "focus:gs://bucket/x.parquet"
  }
  expect_failures = [var.bills]
}

run "telemetry_that_is_no_address" {
  command = plan
  variables {
    telemetry = "prometheus:9090"
  }
  expect_failures = [var.telemetry]
}

run "a_network_without_a_security_group" {
  command = plan
  variables {
    network = { subnets = ["subnet-1"], security_groups = [] }
  }
  expect_failures = [var.network]
}

run "a_budget_of_a_tag_that_is_none" {
  command = plan
  variables {
    budget = { usd_per_month = 20, tag = "pilotlight" }
  }
  expect_failures = [var.budget]
}

run "a_key_by_its_alias" {
  command = plan
  variables {
    encryption = { key = "arn:aws:kms:eu-west-1:123456789012:alias/mine" }
  }
  expect_failures = [var.encryption]
}
