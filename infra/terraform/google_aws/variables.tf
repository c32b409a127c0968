variable "settings" {
  description = "All that a deployment is told: project, region, policy_file, clusters and alerts.email, and what has defaults. modules/settings says what each means (`google`), and refuses what is wrong or misspelt."
  type        = any
}
