variable "project" {
  description = "The Google Cloud project."
  type        = string
}

variable "region" {
  description = "Where the function runs."
  type        = string
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

variable "bundle" {
  description = "The bundle that `make package` made; or `rollback_to`, the SHA-256 of one that was deployed before."
  type        = object({ file = string, rollback_to = optional(string) })

  validation {
    condition     = var.bundle.rollback_to == null || can(regex("^[0-9a-f]{64}$", var.bundle.rollback_to))
    error_message = "A bundle is rolled back to by its SHA-256, 64 characters of 0-9 and a-f, as the output `bundles` printed it."
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

variable "backoff_s" {
  description = "The first and the longest wait between two attempts, in seconds."
  type        = object({ min = number, max = number })
}

variable "size" {
  description = "Memory, instances and requests at once of one instance."
  type        = object({ memory = string, min_instances = number, max_instances = number, concurrency = number })

  validation {
    condition     = var.size.min_instances <= var.size.max_instances
    error_message = "functions.min_instances is larger than functions.max_instances."
  }
  validation {
    condition     = var.size.min_instances >= 0 && var.size.max_instances >= 1 && var.size.max_instances <= 100
    error_message = "functions: min_instances is 0 or more, max_instances between 1 and 100."
  }
  validation {
    condition     = can(regex("^[0-9]+Mi$", var.size.memory)) && try(tonumber(trimsuffix(var.size.memory, "Mi")), 0) >= 256
    error_message = "functions.memory is at least 256Mi, written as in 512Mi."
  }
}

variable "subnetwork" {
  description = "Where requests leave from, or null: from wherever Google sends them."
  type        = object({ network = string, subnetwork = string })
  default     = null
}

variable "ingress" {
  description = "Who may reach it: ALLOW_INTERNAL_ONLY (Pub/Sub of this project or perimeter), or also a load balancer: ALLOW_INTERNAL_AND_GCLB."
  type        = string
  default     = "ALLOW_INTERNAL_ONLY"

  validation {
    condition     = contains(["ALLOW_INTERNAL_ONLY", "ALLOW_INTERNAL_AND_GCLB"], var.ingress)
    error_message = "functions.ingress is ALLOW_INTERNAL_ONLY or ALLOW_INTERNAL_AND_GCLB: nothing outside Google calls a function."
  }
}

variable "encryption" {
  description = "A key of one's own in Cloud KMS and the repository of images that it encrypts, or null: Google's."
  type        = object({ key = string, repository = string })
  default     = null
}
