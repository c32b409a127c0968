output "id" {
  description = "projects/P/topics/T."
  value       = google_pubsub_topic.this.id
}

output "name" {
  description = "The topic's name."
  value       = google_pubsub_topic.this.name
}

output "dead_id" {
  description = "The dead-letter topic's id, or null."
  value       = one(google_pubsub_topic.dead[*].id)
}

output "kept_names" {
  description = "Subscriptions that hold messages until a person has read them."
  value       = concat(google_pubsub_subscription.dead[*].name, google_pubsub_subscription.kept[*].name)
}
