output "uri" {
  description = "PILOTLIGHT_STATE."
  value = (
    var.firestore == null ? "dynamodb:${var.name}" :
    "firestore:${var.project}/${var.name}/${local.collection}"
  )
}

output "aws_policy_arn" {
  description = "The policy that lets a role use the table, or null."
  value       = one(aws_iam_policy.writes[*].arn)
}
