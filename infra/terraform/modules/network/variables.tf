variable "project" {
  description = "The Google Cloud project."
  type        = string
}

variable "region" {
  description = "Where the functions run."
  type        = string
}

variable "name" {
  description = "The network's name, and what the names of its parts begin with."
  type        = string
}

variable "cidr" {
  description = "The subnetwork's range. An instance takes two addresses, and four while a new revision takes over."
  type        = string

  validation {
    condition     = can(cidrnetmask(var.cidr)) && try(tonumber(split("/", var.cidr)[1]), 99) <= 26
    error_message = "network.cidr is a range of 64 addresses or more, as in 10.8.0.0/26."
  }
  validation {
    # Google keeps four addresses of a range for itself.
    condition     = pow(2, 32 - try(tonumber(split("/", var.cidr)[1]), 0)) - 4 >= 4 * var.instances
    error_message = "network.cidr has too few addresses: four for each of ${var.instances} instances (functions x functions.max_instances) and four of Google's own. Take a larger range, as in 10.8.0.0/24, or a smaller functions.max_instances."
  }
}

variable "instances" {
  description = "How many instances of all functions there may be at once."
  type        = number
}

variable "addresses" {
  description = "How many fixed addresses requests may leave from."
  type        = number

  validation {
    condition     = var.addresses >= 1 && var.addresses <= 8
    error_message = "network.addresses is between 1 and 8."
  }
}
