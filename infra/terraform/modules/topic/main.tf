# A topic, the schema of what is published where there is one, and where messages end that nobody could take.

resource "google_pubsub_schema" "this" {
  count = var.schema == null ? 0 : 1

  project    = var.project
  name       = var.schema.name
  type       = "AVRO"
  definition = var.schema.avro
}

resource "google_pubsub_topic" "this" {
  #checkov:skip=CKV_GCP_83:a key of one's own is an input; messages are hints that hold names and prices, no secrets
  project      = var.project
  name         = var.name
  kms_key_name = var.kms_key

  dynamic "schema_settings" {
    for_each = google_pubsub_schema.this
    content {
      schema   = schema_settings.value.id
      encoding = "JSON"
    }
  }
}

resource "google_pubsub_topic" "dead" {
  #checkov:skip=CKV_GCP_83:as the topic above
  count = var.dead_letters ? 1 : 0

  project      = var.project
  name         = "${var.name}-dead"
  kms_key_name = var.kms_key
}

# Pub/Sub's agent is exactly publisher here; it is subscriber on the subscription that gives up (modules/function).
resource "google_pubsub_topic_iam_member" "dead" {
  count = var.dead_letters ? 1 : 0

  project = var.project
  topic   = google_pubsub_topic.dead[0].name
  role    = "roles/pubsub.publisher"
  member  = var.agent
}

# A dead-letter topic without a subscription loses what it is given.
resource "google_pubsub_subscription" "dead" {
  count = var.dead_letters ? 1 : 0

  project                    = var.project
  name                       = "${var.name}-dead"
  topic                      = google_pubsub_topic.dead[0].id
  message_retention_duration = "${var.keep_s}s"

  expiration_policy {
    ttl = ""
  }
}

resource "google_pubsub_subscription" "kept" {
  count = var.kept ? 1 : 0

  project                    = var.project
  name                       = "${var.name}-kept"
  topic                      = google_pubsub_topic.this.id
  message_retention_duration = "${var.keep_s}s"

  expiration_policy {
    ttl = ""
  }
}
