variable "settings" {
  description = "All that a deployment is told: project, region, policy_file, clusters and alerts.email, and what has defaults. modules/settings says what each means (`google`), and refuses what is wrong or misspelt."
  type        = any

  validation {
    condition     = try(var.settings.aws, null) == null && try(var.settings.state.dynamodb, null) == null
    error_message = "aws and state.dynamodb are settings of another root: write them in infra/terraform/google_aws/root, and run `make deploy CLOUD=google-aws`."
  }
}

variable "table" {
  description = "State lies in this table, which the caller made: dynamodb:NAME. It goes with network.path = \"in-cluster\". null: in Firestore."
  type        = string
  default     = null

  validation {
    condition     = var.table == null || can(regex("^dynamodb:.+", var.table)) && try(var.settings.network.path, null) == "in-cluster"
    error_message = "table is written dynamodb:NAME, and goes with network.path = \"in-cluster\"; leave it out, and state lies in Firestore."
  }
}

variable "apis" {
  description = "APIs that the caller's own parts need: they are enabled, and waited for, with those of this module."
  type        = set(string)
  default     = []
}
