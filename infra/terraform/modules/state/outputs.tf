output "uri" {
  description = "PILOTLIGHT_STATE, or null where there is no database."
  value       = var.location == null ? null : "firestore:${var.project}/${var.name}/${local.collection}"
}

output "accounts" {
  description = "Who may use the database: the given name of each account, and its role there."
  value       = tomap({ for name, made in merge(google_project_iam_member.reads, google_project_iam_member.writes) : name => made.role })
}
