variable "settings" {
  description = "All that a deployment is told: policy_file, clusters and alerts.email, and what has defaults. modules/settings says what each means (`aws`), and refuses what is wrong or misspelt. The region is the provider's."
  type        = any
}
