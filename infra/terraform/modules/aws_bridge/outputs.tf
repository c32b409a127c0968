output "dead_letters" {
  description = "The queue's URL: what could not be delivered to Google."
  value       = aws_sqs_queue.dead.url
}

output "audience" {
  description = "What the Lambda shows its identity to."
  value       = local.audience
}
