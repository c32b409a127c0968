# The same as the module's: `terraform output -raw state` and the guides read them here.

output "prefix" {
  description = "What every name begins with."
  value       = module.pilotlight.prefix
}

output "allow_list" {
  description = "Let these addresses through the firewall of every cluster's API server. Empty where none is needed."
  value       = module.pilotlight.allow_list
}

output "secrets_to_make" {
  description = "Secrets that must exist before deploying: gcloud secrets create NAME --data-file=FILE, with --replication-policy=user-managed --locations=REGION --kms-key-name=KEY where encryption names a key."
  value       = module.pilotlight.secrets_to_make
}

output "bundles" {
  description = "What is deployed, by function: the SHA-256 that functions.rollback_to takes."
  value       = module.pilotlight.bundles
}

output "state" {
  description = "PILOTLIGHT_STATE: for `pilotlight state export` and `why` from a laptop."
  value       = module.pilotlight.state
}

output "alerts" {
  description = "PILOTLIGHT_ALERTS: for `pilotlight alerts list` and `redeliver` from a laptop."
  value       = module.pilotlight.alerts
}

output "policy" {
  description = "PILOTLIGHT_POLICY: where functions read the policy."
  value       = module.pilotlight.policy
}

output "outbox" {
  description = "PILOTLIGHT_OUTBOX."
  value       = module.pilotlight.outbox
}

output "topics" {
  description = "Where events may be published by hand: gcloud pubsub topics publish NAME --message=..."
  value       = module.pilotlight.topics
}

output "accounts" {
  description = "The account each function runs as."
  value       = module.pilotlight.accounts
}

output "connect" {
  description = "What lets the functions into each GKE cluster, by its RBAC: run it with a kubeconfig of your own."
  value       = module.pilotlight.connect
}
