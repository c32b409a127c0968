mock_provider "google" {
  mock_resource "google_logging_project_sink" {
    defaults = { writer_identity = "serviceAccount:sink@logging.example" }
  }
}

variables {
  project = "acme-pilotlight"
  topics  = { pod-events = { id = "projects/acme-pilotlight/topics/pod-events", name = "pod-events" } }
  sinks   = { failed = { project = "acme-clusters", name = "failed", filter = "log_id(\"events\")", topic = "pod-events" } }
}

run "a_sink_writes_as_itself_to_its_topic_alone" {
  command = apply
  assert {
    condition     = google_logging_project_sink.this["failed"].destination == "pubsub.googleapis.com/projects/acme-pilotlight/topics/pod-events" && google_logging_project_sink.this["failed"].unique_writer_identity && google_logging_project_sink.this["failed"].project == "acme-clusters"
    error_message = "the sink feeds the topic, as an identity of its own"
  }
  assert {
    condition     = google_pubsub_topic_iam_member.writer["failed"].member == "serviceAccount:sink@logging.example" && google_pubsub_topic_iam_member.writer["failed"].role == "roles/pubsub.publisher" && google_pubsub_topic_iam_member.writer["failed"].topic == "pod-events"
    error_message = "the writer may publish to that topic"
  }
}
