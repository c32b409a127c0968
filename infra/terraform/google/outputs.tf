output "prefix" {
  description = "What every name begins with."
  value       = module.plan.prefix
}

output "allow_list" {
  description = "Let these addresses through the firewall of every cluster's API server. Empty where none is needed."
  value       = try(module.network[0].addresses, [])
}

output "secrets_to_make" {
  description = "Secrets that must exist before deploying: gcloud secrets create NAME --data-file=FILE, with --replication-policy=user-managed --locations=REGION --kms-key-name=KEY where encryption names a key."
  value       = sort(distinct(flatten([for function in values(local.functions) : values(function.secrets)])))
}

output "bundles" {
  description = "What is deployed, by function: the SHA-256 that functions.rollback_to takes."
  value       = { for function, made in module.function : function => made.bundle }
}

output "state" {
  description = "PILOTLIGHT_STATE: for `pilotlight state export` and `why` from a laptop."
  value       = local.state_uri
}

output "alerts" {
  description = "PILOTLIGHT_ALERTS: for `pilotlight alerts list` and `redeliver` from a laptop."
  value       = try(module.alerts_state[0].uri, null)
}

output "policy" {
  description = "PILOTLIGHT_POLICY: where functions read the policy."
  value       = local.hosted ? local.policy_uri : null
}

output "outbox" {
  description = "PILOTLIGHT_OUTBOX."
  value       = local.hosted ? "pubsub:${local.settings.project}/${module.plan.prefix}" : null
}

output "topics" {
  description = "Where events may be published by hand: gcloud pubsub topics publish NAME --message=..."
  value       = { for name, topic in local.topics : name => topic.name }
}

output "accounts" {
  description = "The account each function runs as."
  value       = { for function, made in module.function : function => made.runtime }
}

output "connect" {
  description = "What lets the functions into each GKE cluster, by its RBAC: run it with a kubeconfig of your own."
  value = {
    for cluster in local.hosted ? module.plan.gke_clusters : [] : cluster => join(" ", concat(
      ["pilotlight connect --context ${cluster} --act${module.plan.rights[cluster]} --policy ${local.settings.policy_file}"],
      flatten([
        for function, made in module.function : [
          for name in [made.runtime, made.runtime_id] : "${module.plan.roles[function] == "act" ? "--actor" : "--reader"} ${name}"
        ] if contains(["act", "read"], module.plan.roles[function])
      ]),
    ))
  }
}
