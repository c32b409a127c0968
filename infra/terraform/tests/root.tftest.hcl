# What the root adds to the module google/: what `make` gives, and what an earlier deployment left behind.

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

# Mocks have nothing that could be imported: each stands for what was left behind.
override_resource {
  target = module.pilotlight.module.state.google_firestore_database.this[0]
}
override_resource {
  target = module.pilotlight.module.alerts_state[0].google_firestore_database.this[0]
}

variables {
  settings = {
    project     = "acme-pilotlight"
    region      = "europe-west1"
    policy_file = "examples/civo/policy.yaml"
    clusters    = { ml = { civo = { region = "LON1", cluster_id = "c-1" } } }
    alerts      = { email = "ops@example.com" }
    functions   = { bundles = "google/tests/bundles" }
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
    adopt       = ["database"]
  }
  assert {
    condition     = output.prefix == "pilotlight-prod" && output.state == "firestore:acme-pilotlight/pilotlight-prod/pilotlight"
    error_message = "the environment that make gives"
  }
  assert {
    condition     = local.database == "projects/acme-pilotlight/databases/pilotlight-prod"
    error_message = "the database that is taken over has the deployment's name"
  }
}
