# All that the module google/ can be asked for at once, and the bridge; tests/infra/terraform reads the state that it leads to.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789" }
  }
  mock_data "google_storage_project_service_account" {
    defaults = { member = "serviceAccount:service-123456789@gs-project-accounts.iam.gserviceaccount.com" }
  }
  mock_resource "google_logging_project_sink" {
    defaults = { writer_identity = "serviceAccount:sink@logging.example" }
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
}

variables {
  settings = {
    project     = "acme-pilotlight"
    region      = "europe-west1"
    policy_file = "../examples/civo/policy.yaml"
    clusters = {
      ml    = { civo = { region = "LON1", cluster_id = "c-1" } }
      batch = { gke = { location = "europe-west1", cluster = "batch", project = "acme-clusters", buys = true, queue = true }, kueue = true, reclaim = true }
      aks   = { karpenter = { limits = true, claims = true } }
    }
    alerts     = { email = "ops@example.com", secrets = { SLACK_URL = "pilotlight-slack" }, figures = true }
    functions  = { bundles = "tests/bundles" }
    aws        = { account_id = "123456789012", region = "eu-west-1" }
    budget     = { billing_account = "012345-6789AB-CDEF01", usd_per_month = 20 }
    telemetry  = "https://monitoring.googleapis.com/v1/projects/acme-metrics/location/global/prometheus"
    bills      = "focus:gs://acme-bills/export/*.parquet"
    audit      = { bucket = "acme-audit", account = "exporter@acme-audit.iam.gserviceaccount.com", project = "acme-audit" }
    encryption = { key = "projects/acme-keys/locations/europe-west1/keyRings/r/cryptoKeys/k" }
    wait_s     = { apis = 0, rights = 0 }
  }
}

run "all_of_it" {
  command = apply
  assert {
    condition     = length(module.aws_bridge) == 1 && length(module.aws_table) == 0
    error_message = "with an AWS account there is a bridge, and state is at Google"
  }
  assert {
    condition     = output.state == "firestore:acme-pilotlight/pilotlight-dev/pilotlight" && output.dynamodb_policy == null
    error_message = "state is a database"
  }
}
