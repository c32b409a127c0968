output "prefix" {
  description = "What every name begins with."
  value       = local.prefix
}

output "secrets_to_make" {
  description = "Secrets that must exist before deploying: aws secretsmanager create-secret --name NAME --secret-string file://FILE, with --kms-key-id KEY where encryption names one."
  value       = sort(distinct(flatten([for secrets in values(local.secrets) : values(secrets)])))
}

output "bundles" {
  description = "What is deployed, by function: the bundle's SHA-256, in base64."
  value       = { for function, made in aws_lambda_function.this : function => made.source_code_hash }
}

output "state" {
  description = "PILOTLIGHT_STATE: for `pilotlight state export` and `why` from a laptop."
  value       = local.environment.PILOTLIGHT_STATE
}

output "alerts" {
  description = "PILOTLIGHT_ALERTS: for `pilotlight alerts list` and `redeliver` from a laptop."
  value       = local.environment.PILOTLIGHT_ALERTS
}

output "policy" {
  description = "PILOTLIGHT_POLICY: where functions read the policy."
  value       = local.policy_uri
}

output "outbox" {
  description = "PILOTLIGHT_OUTBOX."
  value       = local.environment.PILOTLIGHT_OUTBOX
}

output "costs" {
  description = "The topic for notices of AWS Budgets and Cost Anomaly Detection: name it in their notifications."
  value       = aws_sns_topic.costs.arn
}

output "queues" {
  description = "Where events may be sent by hand: aws sqs send-message --queue-url URL --message-body ..."
  value       = { for name, queue in aws_sqs_queue.this : name => queue.url }
}

output "pod_events" {
  description = "Where the event exporter in a cluster sends: the queue's name, that for Kueue's Workloads (null without kueue), and the policy that its role needs."
  value = {
    queue     = aws_sqs_queue.this["pod-events"].name
    workloads = local.wanted.kueue_admission ? aws_sqs_queue.this["workload-events"].name : null
    policy    = aws_iam_policy.pod_events.arn
  }
}

output "audit_export" {
  description = "The policy for whoever runs `pilotlight audit export`; null where no bucket is named in audit."
  value       = one(aws_iam_policy.audit_export[*].arn)
}

output "roles" {
  description = "The role each function runs as."
  value       = { for function, role in aws_iam_role.function : function => role.arn }
}

output "connect" {
  description = "What lets the functions into each EKS cluster, by its RBAC: run it with a kubeconfig of your own."
  value = {
    for name, cluster in local.eks : name => join(" ", concat(
      ["pilotlight connect --context ${name} --act${module.settings.rights[name]} --policy ${local.settings.policy_file}"],
      [
        for function, route in local.routes :
        "${route.role == "act" ? "--actor" : "--reader"} ${local.prefix}-${replace(function, "_", "-")}" if contains(["act", "read"], route.role)
      ],
    ))
  }
}

output "key_policy" {
  description = "Statements that the policy of encryption.key has to have, for AWS's services that write what it encrypts. Empty without a key."
  value       = local.key == null ? "" : jsonencode(local.key_policy)
}
