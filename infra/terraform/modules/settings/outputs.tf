output "settings" {
  description = "The settings with every default in its place. Nothing that needs them is worked out where one is refused."
  value       = local.settings

  precondition {
    condition     = length(local.refused) == 0
    error_message = join("\n", local.refused)
  }
}

output "rights" {
  description = "Per cluster: the options of `pilotlight connect` for what is asked for beside acting."
  value = {
    for name, c in local.settings.clusters : name => join("", [
      for option, asked in {
        gke-queue        = try(c.gke.queue, false)
        karpenter        = c.karpenter.limits
        karpenter-claims = c.karpenter.claims
        kueue            = c.kueue
        reclaim          = c.reclaim
      } : " --${option}" if asked
    ])
  }
}
