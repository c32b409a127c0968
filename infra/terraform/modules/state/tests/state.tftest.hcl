mock_provider "google" {}
mock_provider "aws" {
  mock_resource "aws_dynamodb_table" {
    defaults = { arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/pilotlight-dev" }
  }
}

variables {
  project   = "acme-pilotlight"
  name      = "pilotlight-dev"
  firestore = { location = "europe-west1" }
  writers   = { pod_pending = "a@acme.iam.gserviceaccount.com" }
}

run "firestore_forgets_what_expired_and_can_be_wound_back" {
  command = apply
  assert {
    condition     = google_firestore_field.expires[0].field == "expireAt" && length(google_firestore_field.expires[0].ttl_config) == 1
    error_message = "the adapter's field ends records"
  }
  assert {
    condition     = google_firestore_database.this[0].point_in_time_recovery_enablement == "POINT_IN_TIME_RECOVERY_ENABLED" && google_firestore_database.this[0].delete_protection_state == "DELETE_PROTECTION_ENABLED"
    error_message = "seven days back, and no deleting by mistake"
  }
  assert {
    condition     = length(aws_dynamodb_table.this) == 0
    error_message = "one store"
  }
}

run "accounts_reach_this_database_alone" {
  command = apply
  assert {
    condition     = google_project_iam_member.writes["pod_pending"].role == "roles/datastore.user" && google_project_iam_member.writes["pod_pending"].condition[0].expression == "resource.name == \"projects/acme-pilotlight/databases/pilotlight-dev\""
    error_message = "the condition names the database"
  }
}

run "who_only_reads_may_only_read" {
  command = apply
  variables { readers = { capacity_reconcile = "r@acme.iam.gserviceaccount.com" } }
  assert {
    condition     = google_project_iam_member.reads["capacity_reconcile"].role == "roles/datastore.viewer" && google_project_iam_member.reads["capacity_reconcile"].condition[0].expression == google_project_iam_member.writes["pod_pending"].condition[0].expression
    error_message = "the same database, to look at"
  }
}

run "a_key_of_ones_own_encrypts_it" {
  command = apply
  variables { kms_key = "projects/acme-pilotlight/locations/europe-west1/keyRings/r/cryptoKeys/k" }
  assert {
    condition     = google_firestore_database.this[0].cmek_config[0].kms_key_name == "projects/acme-pilotlight/locations/europe-west1/keyRings/r/cryptoKeys/k"
    error_message = "the database has the key"
  }
}

run "a_table_expires_recovers_and_is_encrypted" {
  command = apply
  variables {
    firestore = null
    dynamodb  = {}
    writers   = {}
  }
  assert {
    condition     = aws_dynamodb_table.this[0].hash_key == "room" && aws_dynamodb_table.this[0].range_key == "key" && aws_dynamodb_table.this[0].ttl[0].attribute_name == "expires"
    error_message = "keys and TTL are the adapter's"
  }
  assert {
    condition     = aws_dynamodb_table.this[0].point_in_time_recovery[0].enabled && aws_dynamodb_table.this[0].server_side_encryption[0].enabled
    error_message = "it can be wound back, and is encrypted"
  }
  assert {
    condition = jsondecode(aws_iam_policy.writes[0].policy).Statement == [{
      Action   = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"]
      Effect   = "Allow"
      Resource = "arn:aws:dynamodb:eu-west-1:123456789012:table/pilotlight-dev"
    }]
    error_message = "four calls on one table"
  }
}

run "refuses_both_stores_at_once" {
  command = plan
  variables { dynamodb = {} }
  expect_failures = [var.dynamodb]
}

run "refuses_no_store" {
  command = plan
  variables { firestore = null }
  expect_failures = [var.dynamodb]
}
