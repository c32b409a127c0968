output "settings" {
  description = "The settings with every default in its place."
  value       = local.settings
}

output "prefix" {
  description = "What every name begins with."
  value       = local.prefix
}

output "functions" {
  description = "Per function: name, accounts, environment, secrets, what it publishes, subscriptions with their numbers."
  value       = local.functions
}

output "topics" {
  description = "Per topic: whether undelivered messages go to a dead-letter topic, and whether a copy is kept for people."
  value       = local.topics
}

output "schedules" {
  description = "Per cluster and kind of tick: name, cron, and what the tick says."
  value       = local.schedules
}

output "sinks" {
  description = "Log sinks of the GKE clusters: name, filter, and the topic they feed."
  value       = local.sinks
}

output "cluster_secrets" {
  description = "Per role (act, read): environment variable to the name of the secret that must exist before deploying."
  value       = local.cluster_secrets
}

output "reaches_gke" {
  description = "Each function that talks to GKE clusters, and the project of some; none where there are no such clusters."
  value       = local.reaches_gke
}

output "buys_gke" {
  description = "Each function that reads the groups of a GKE cluster's node pools: the project, how their names may begin, and whether it changes them."
  value       = local.buys_gke
}

output "roles" {
  description = "Per function: what it may do in clusters and at clouds: act, read, none."
  value       = { for function, route in local.routes : function => route.role }
}

output "rights" {
  description = "Per cluster: the options of `pilotlight connect` for what is asked for beside acting."
  value       = module.settings.rights
}

output "gke_clusters" {
  description = "The names of the GKE clusters, where RBAC has to know the functions' accounts."
  value       = keys(local.gke)
}

output "left_out" {
  description = "Variables that functions know and that are not set, each with the reason."
  value       = local.left_out
}

output "name_of_ticks_schema" {
  description = "The name of the schema of ticks."
  value       = "${local.prefix}-tick"
}
