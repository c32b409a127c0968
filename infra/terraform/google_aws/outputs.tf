# The same as those of google/, and the policy of the table.

output "prefix" {
  description = "What every name begins with."
  value       = module.google.prefix
}

output "allow_list" {
  description = "Let these addresses through the firewall of every cluster's API server. Empty where none is needed."
  value       = module.google.allow_list
}

output "secrets_to_make" {
  description = "Secrets that must exist before deploying: gcloud secrets create NAME --data-file=FILE, with --replication-policy=user-managed --locations=REGION --kms-key-name=KEY where encryption names a key."
  value       = module.google.secrets_to_make
}

output "bundles" {
  description = "What is deployed, by function: the SHA-256 that functions.rollback_to takes."
  value       = module.google.bundles
}

output "state" {
  description = "PILOTLIGHT_STATE: for `pilotlight state export` and `why` from a laptop."
  value       = module.google.state
}

output "alerts" {
  description = "PILOTLIGHT_ALERTS: for `pilotlight alerts list` and `redeliver` from a laptop."
  value       = module.google.alerts
}

output "policy" {
  description = "PILOTLIGHT_POLICY: where functions read the policy."
  value       = module.google.policy
}

output "outbox" {
  description = "PILOTLIGHT_OUTBOX."
  value       = module.google.outbox
}

output "topics" {
  description = "Where events may be published by hand: gcloud pubsub topics publish NAME --message=..."
  value       = module.google.topics
}

output "accounts" {
  description = "The account each function runs as."
  value       = module.google.accounts
}

output "connect" {
  description = "What lets the functions into each GKE cluster, by its RBAC: run it with a kubeconfig of your own."
  value       = module.google.connect
}

output "dynamodb_policy" {
  description = "The AWS policy that lets a role use the table, where state is one."
  value       = one(module.aws_table[*].policy_arn)
}
