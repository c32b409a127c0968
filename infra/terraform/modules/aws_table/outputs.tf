output "uri" {
  description = "PILOTLIGHT_STATE: dynamodb:NAME."
  value       = "dynamodb:${aws_dynamodb_table.this.name}"
}

output "policy_arn" {
  description = "The policy that lets a role use the table."
  value       = aws_iam_policy.writes.arn
}
