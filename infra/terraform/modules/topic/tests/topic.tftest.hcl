mock_provider "google" {}

variables {
  project      = "acme-pilotlight"
  name         = "pilotlight-dev-ticks"
  agent        = "serviceAccount:service-1@gcp-sa-pubsub.iam.gserviceaccount.com"
  dead_letters = true
}

run "dead_letters_are_kept" {
  command = apply
  assert {
    condition     = google_pubsub_subscription.dead[0].topic == google_pubsub_topic.dead[0].id && google_pubsub_subscription.dead[0].message_retention_duration == "1209600s"
    error_message = "the dead-letter topic has a subscription of its own, for two weeks"
  }
  assert {
    condition     = google_pubsub_topic_iam_member.dead[0].role == "roles/pubsub.publisher" && google_pubsub_topic_iam_member.dead[0].member == var.agent
    error_message = "Pub/Sub's agent is exactly publisher on the dead-letter topic"
  }
}

run "a_schema_is_held" {
  command = apply
  variables { schema = { name = "tick", avro = "{\"type\": \"string\"}" } }
  assert {
    condition     = google_pubsub_topic.this.schema_settings[0].schema == google_pubsub_schema.this[0].id && google_pubsub_topic.this.schema_settings[0].encoding == "JSON"
    error_message = "messages must follow the schema"
  }
}

run "without_dead_letters_there_is_one_topic" {
  command = apply
  variables { dead_letters = false }
  assert {
    condition     = output.dead_id == null && length(output.kept_names) == 0
    error_message = "nothing more than the topic"
  }
}

run "refuses_to_keep_for_an_hour" {
  command = plan
  variables { keep_s = 3600 }
  expect_failures = [var.keep_s]
}
