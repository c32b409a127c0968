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

output "accounts" {
  description = "Who may use the Firestore database: the given name of each account, and its role there."
  value       = tomap({ for name, made in merge(google_project_iam_member.reads, google_project_iam_member.writes) : name => made.role })
}
