# The same as the module's: `terraform output -raw state` and the guides read them here.

output "prefix" {
  description = "What every name begins with."
  value       = module.pilotlight.prefix
}

output "secrets_to_make" {
  description = "Secrets that must exist before deploying: aws secretsmanager create-secret --name NAME --secret-string file://FILE, with --kms-key-id KEY where encryption names one."
  value       = module.pilotlight.secrets_to_make
}

output "bundles" {
  description = "What is deployed, by function: the bundle's SHA-256, in base64."
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

output "costs" {
  description = "The topic for notices of AWS Budgets and Cost Anomaly Detection: name it in their notifications."
  value       = module.pilotlight.costs
}

output "queues" {
  description = "Where events may be sent by hand: aws sqs send-message --queue-url URL --message-body ..."
  value       = module.pilotlight.queues
}

output "pod_events" {
  description = "Where the event exporter in a cluster sends: the queue's name, that for Kueue's Workloads (null without kueue), and the policy that its role needs."
  value       = module.pilotlight.pod_events
}

output "audit_export" {
  description = "The policy for whoever runs `pilotlight audit export`; null where no bucket is named in audit."
  value       = module.pilotlight.audit_export
}

output "roles" {
  description = "The role each function runs as."
  value       = module.pilotlight.roles
}

output "connect" {
  description = "What lets the functions into each EKS cluster, by its RBAC: run it with a kubeconfig of your own."
  value       = module.pilotlight.connect
}

output "key_policy" {
  description = "Statements that the policy of encryption.key has to have, for AWS's services that write what it encrypts. Empty without a key."
  value       = module.pilotlight.key_policy
}
