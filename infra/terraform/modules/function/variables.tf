variable "settings" {
  description = "The settings of the deployment, with every default in its place, as modules/settings puts them out."
  type        = any
}

variable "function" {
  description = "The function's folder under functions/, which is also its entry point."
  type        = string
}

variable "plan" {
  description = "What modules/plan says of this function."
  type = object({
    name        = string
    account     = string
    invoker     = string
    memory      = string
    timeout_s   = number
    environment = map(string)
    secrets     = map(string)
    publishes   = list(string)
    subscriptions = map(object({
      name           = string
      filter         = string
      attempts       = number
      ack_deadline_s = number
      retention_s    = number
      ordered        = optional(bool, false)
    }))
  })

  validation {
    condition     = alltrue([for account in [var.plan.account, var.plan.invoker] : can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", account))])
    error_message = "An account's name has 6 to 30 lower-case letters, digits and hyphens: make name or environment shorter."
  }
}

variable "bucket" {
  description = "The bucket of bundles and policy."
  type        = string
}

variable "builder" {
  description = "The account that builds, as projects/P/serviceAccounts/EMAIL."
  type        = string
}

variable "agent" {
  description = "Pub/Sub's service agent, as an IAM member."
  type        = string
}

variable "topics" {
  description = "Topics by their short name."
  type        = map(object({ id = string, name = string, dead_id = optional(string) }))
}

variable "subnetwork" {
  description = "Where requests leave from, or null: from wherever Google sends them."
  type        = object({ network = string, subnetwork = string })
  default     = null
}

variable "key" {
  description = "A key of one's own in Cloud KMS, or null: Google's."
  type        = string
  default     = null
}

variable "repository" {
  description = "The repository that images are pushed to, by its id."
  type        = string
}
