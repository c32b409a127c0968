# What survives between events: one Firestore database, or one DynamoDB table. Both delete what has expired.

locals {
  collection = "pilotlight"
}

resource "google_firestore_database" "this" {
  count = var.firestore == null ? 0 : 1

  project                           = var.project
  name                              = var.name
  location_id                       = var.firestore.location
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
  count = var.firestore == null ? 0 : 1

  project    = var.project
  database   = google_firestore_database.this[0].name
  collection = local.collection
  field      = "expireAt"

  ttl_config {}
  index_config {}
}

# Records are fetched by key: an index of their bytes would cost, and serve nobody.
resource "google_firestore_field" "value" {
  count = var.firestore == null ? 0 : 1

  project    = var.project
  database   = google_firestore_database.this[0].name
  collection = local.collection
  field      = "value"

  index_config {}
}

# The role exists for projects only, so the condition names the one database.
resource "google_project_iam_member" "writes" {
  for_each = var.firestore == null ? {} : var.writers

  project = var.project
  role    = "roles/datastore.user"
  member  = "serviceAccount:${each.value}"

  condition {
    title      = "${var.name}-only"
    expression = "resource.name == \"projects/${var.project}/databases/${var.name}\""
  }
}

resource "google_project_iam_member" "reads" {
  for_each = var.firestore == null ? {} : var.readers

  project = var.project
  role    = "roles/datastore.viewer"
  member  = "serviceAccount:${each.value}"

  condition {
    title      = "${var.name}-only"
    expression = "resource.name == \"projects/${var.project}/databases/${var.name}\""
  }
}

resource "aws_dynamodb_table" "this" {
  #checkov:skip=CKV_AWS_119:encrypted with AWS's own KMS key; the records hold names and dollars, no secrets
  count = var.dynamodb == null ? 0 : 1

  name                        = var.name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "room"
  range_key                   = "key"
  deletion_protection_enabled = var.protected

  attribute {
    name = "room"
    type = "S"
  }

  attribute {
    name = "key"
    type = "S"
  }

  ttl {
    attribute_name = "expires"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled = true
  }
}

# For whoever runs the functions at home: what the adapter calls, on this table and no other.
resource "aws_iam_policy" "writes" {
  count = var.dynamodb == null ? 0 : 1

  name = "${var.name}-state"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"]
      Resource = aws_dynamodb_table.this[0].arn
    }]
  })
}
