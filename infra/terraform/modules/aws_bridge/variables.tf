variable "project" {
  description = "The Google Cloud project of the topics."
  type        = string
}

variable "name" {
  description = "What the names of all parts begin with."
  type        = string
}

variable "account_id" {
  description = "The AWS account whose Lambda may publish."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "aws.account_id is the account's 12 digits, in quotes."
  }
}

variable "bundle" {
  description = "The Lambda's bundle, as `make package` makes it."
  type        = string
}

variable "topics" {
  description = "Topics by their short name."
  type        = map(object({ id = string, name = string, dead_id = optional(string) }))
}
