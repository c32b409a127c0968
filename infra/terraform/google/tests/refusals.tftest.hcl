# What is refused, before anything is asked of a cloud.

mock_provider "google" {}
mock_provider "google-beta" {}
mock_provider "aws" {}

variables {
  project     = "acme-pilotlight"
  region      = "europe-west1"
  policy_file = "../examples/civo/policy.yaml"
  clusters    = { ml = { civo = { region = "LON1", cluster_id = "c-1" } } }
  alerts      = { email = "ops@example.com" }
  functions   = { bundles = "./tests/bundles" }
}

run "refuses_a_bad_project" {
  command = plan
  variables { project = "Acme" }
  expect_failures = [var.project]
}

run "refuses_an_unknown_region" {
  command = plan
  variables { region = "europe-west99" }
  expect_failures = [var.region]
}

run "refuses_a_zone_for_a_region" {
  command = plan
  variables { region = "us-central1-c" }
  expect_failures = [var.region]
}

run "refuses_a_bad_name" {
  command = plan
  variables { name = "Pilot_Light" }
  expect_failures = [var.name]
}

run "refuses_an_environment_too_long" {
  command = plan
  variables { environment = "production" }
  expect_failures = [var.environment]
}

run "refuses_a_policy_that_is_not_there" {
  command = plan
  variables { policy_file = "nowhere.yaml" }
  # The hash of the missing file fails too; what people read first is the refusal.
  expect_failures = [var.policy_file]
}

run "refuses_an_address_that_is_none" {
  command = plan
  variables { alerts = { email = "ops" } }
  expect_failures = [var.alerts]
}

run "refuses_both_stores_at_once" {
  command = plan
  variables { state = { firestore = {}, dynamodb = {} } }
  expect_failures = [var.state]
}

run "refuses_a_table_for_functions_on_google" {
  command = plan
  variables {
    state = { dynamodb = {} }
    aws   = { account_id = "123456789012", region = "eu-west-1" }
  }
  expect_failures = [var.state]
}

run "refuses_an_unknown_path" {
  command = plan
  variables { network = { path = "vpn" } }
  expect_failures = [var.network]
}

run "refuses_the_dns_endpoint_for_others_than_gke" {
  command = plan
  variables { network = { path = "dns-endpoint" } }
  expect_failures = [var.network]
}

run "refuses_more_least_instances_than_most" {
  command = plan
  variables { functions = { bundles = "./tests/bundles", min_instances = 4, max_instances = 3 } }
  expect_failures = [var.functions]
}

run "refuses_missing_bundles" {
  command = plan
  variables { functions = { bundles = "./nowhere" } }
  expect_failures = [var.functions]
}

run "refuses_a_budget_of_nothing" {
  command = plan
  variables { budget = { billing_account = "012345-6789AB-CDEF01", usd_per_month = 0 } }
  expect_failures = [var.budget]
}

run "refuses_a_negative_budget" {
  command = plan
  variables { budget = { billing_account = "012345-6789AB-CDEF01", usd_per_month = -5 } }
  expect_failures = [var.budget]
}

run "refuses_an_account_that_is_none" {
  command = plan
  variables { aws = { account_id = "1234", region = "eu-west-1" } }
  expect_failures = [var.aws]
}

run "refuses_an_exporter_that_writes_the_state" {
  command = plan
  variables {
    state = { accounts = ["home@acme.iam.gserviceaccount.com"] }
    audit = { bucket = "acme-audit", account = "home@acme.iam.gserviceaccount.com" }
  }
  expect_failures = [var.audit]
}

run "refuses_an_exporter_that_is_no_account" {
  command = plan
  variables { audit = { bucket = "acme-audit", account = "user:ops@example.com" } }
  expect_failures = [var.audit]
}
