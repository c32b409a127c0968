variable "region" {
  description = "The AWS region that everything is in, which is the clusters': eu-west-1, us-east-1, ..."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region is written as AWS does, as in eu-west-1; a zone such as eu-west-1a is no region."
  }
}

variable "settings" {
  description = "All that a deployment is told: policy_file, clusters and alerts.email, and what has defaults. modules/settings says what each means (`aws`), and refuses what is wrong or misspelt. The region is the provider's."
  type        = any
}

variable "environment" {
  description = "Which deployment this is, the second part of every name: before what settings say. `make deploy CLOUD=aws ENV=prod` gives it."
  type        = string
  default     = null
}

variable "protected" {
  description = "Whether deleting the state is refused: before what settings say. `make unprotect CLOUD=aws` sets it to false."
  type        = bool
  default     = null
}

variable "labels" {
  description = "Tags of everything that can have some, as {team = \"ml\"}."
  type        = map(string)
  default     = { app = "pilotlight" }
}

variable "adopt" {
  description = "Whether tables of these names that are there already are taken over: after Terraform's own state was lost."
  type        = bool
  default     = false
}
