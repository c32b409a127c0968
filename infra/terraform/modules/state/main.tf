# What survives between events: one Firestore database, which deletes what has expired.

locals {
  collection = "pilotlight"
}

resource "google_firestore_database" "this" {
  count = var.location == null ? 0 : 1

  project                           = var.project
  name                              = var.name
  location_id                       = var.location
  type                              = "FIRESTORE_NATIVE"
  concurrency_mode                  = "OPTIMISTIC"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = var.protected ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  deletion_policy                   = var.protected ? "ABANDON" : "DELETE"

  dynamic "cmek_config" {
    for_each = var.kms_key == null ? [] : [var.kms_key]
    content {
      kms_key_name = cmek_config.value
    }
  }
}

resource "google_firestore_field" "expires" {
  count = var.location == null ? 0 : 1

  project    = var.project
  database   = google_firestore_database.this[0].name
  collection = local.collection
  field      = "expireAt"

  ttl_config {}
  index_config {}
}

# Records are fetched by key: an index of their bytes would cost, and serve nobody.
resource "google_firestore_field" "value" {
  count = var.location == null ? 0 : 1

  project    = var.project
  database   = google_firestore_database.this[0].name
  collection = local.collection
  field      = "value"

  index_config {}
}

# The role exists for projects only, so the condition names the one database.
resource "google_project_iam_member" "writes" {
  for_each = var.location == null ? {} : var.writers

  project = var.project
  role    = "roles/datastore.user"
  member  = "serviceAccount:${each.value}"

  condition {
    title      = "${var.name}-only"
    expression = "resource.name == \"projects/${var.project}/databases/${var.name}\""
  }
}

resource "google_project_iam_member" "reads" {
  for_each = var.location == null ? {} : var.readers

  project = var.project
  role    = "roles/datastore.viewer"
  member  = "serviceAccount:${each.value}"

  condition {
    title      = "${var.name}-only"
    expression = "resource.name == \"projects/${var.project}/databases/${var.name}\""
  }
}
