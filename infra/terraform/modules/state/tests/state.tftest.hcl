mock_provider "google" {}

variables {
  project  = "acme-pilotlight"
  name     = "pilotlight-dev"
  location = "europe-west1"
  writers  = { pod_pending = "a@acme.iam.gserviceaccount.com" }
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
    condition     = output.uri == "firestore:acme-pilotlight/pilotlight-dev/pilotlight"
    error_message = "PILOTLIGHT_STATE names the database"
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

run "without_a_place_nothing_is_made" {
  command = apply
  variables { location = null }
  assert {
    condition     = output.uri == null && length(google_firestore_database.this) == 0 && length(google_project_iam_member.writes) == 0
    error_message = "state lies elsewhere: no database, and no right to one"
  }
}
