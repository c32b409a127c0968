# What the root adds to the module beside it: what `make` gives, and what an earlier deployment left behind.

mock_provider "google" {
  mock_resource "google_service_account" {
    defaults = { email = "a@acme-pilotlight.iam.gserviceaccount.com" }
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

# Mocks have nothing that could be imported: each stands for what was left behind.
override_resource {
  target = module.pilotlight.module.google.module.state.google_firestore_database.this[0]
}
override_resource {
  target = module.pilotlight.module.google.module.alerts_state[0].google_firestore_database.this[0]
}
override_resource {
  target = module.pilotlight.module.aws_bridge[0].google_iam_workload_identity_pool.this
}
override_resource {
  target = module.pilotlight.module.aws_bridge[0].google_iam_workload_identity_pool_provider.this
}

variables {
  settings = {
    project     = "acme-pilotlight"
    region      = "europe-west1"
    policy_file = "../../examples/eks/policy.yaml"
    clusters    = { ml = {} }
    alerts      = { email = "ops@example.com" }
    functions   = { bundles = "../tests/bundles" }
    aws         = { account_id = "123456789012", region = "eu-west-1" }
    environment = "test"
    wait_s      = { apis = 0, rights = 0 }
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
    adopt       = ["database", "aws"]
  }
  assert {
    condition     = output.prefix == "pilotlight-prod" && output.state == "firestore:acme-pilotlight/pilotlight-prod/pilotlight"
    error_message = "the environment that make gives"
  }
  assert {
    condition     = local.database == "projects/acme-pilotlight/databases/pilotlight-prod" && local.pool == "projects/acme-pilotlight/locations/global/workloadIdentityPools/pilotlight-prod-aws"
    error_message = "the database and the pool that are taken over have the deployment's name"
  }
}
