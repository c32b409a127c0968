# What GKE writes into Cloud Logging about its clusters, sent on to the topics of the functions that take it.

resource "google_logging_project_sink" "this" {
  for_each = var.sinks

  project                = each.value.project
  name                   = each.value.name
  description            = "Pilotlight: ${each.key}"
  destination            = "pubsub.googleapis.com/${var.topics[each.value.topic].id}"
  filter                 = each.value.filter
  unique_writer_identity = true
}

resource "google_pubsub_topic_iam_member" "writer" {
  for_each = var.sinks

  project = var.project
  topic   = var.topics[each.value.topic].name
  role    = "roles/pubsub.publisher"
  member  = google_logging_project_sink.this[each.key].writer_identity
}
