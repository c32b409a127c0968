variable "settings" {
  description = "The settings of the deployment, with every default in its place, as modules/settings puts them out."
  type        = any

  validation {
    condition     = can(cidrnetmask(var.settings.network.cidr)) && try(tonumber(split("/", var.settings.network.cidr)[1]), 99) <= 26
    error_message = "network.cidr is a range of 64 addresses or more, as in 10.8.0.0/26."
  }
  validation {
    # Google keeps four addresses of a range for itself.
    condition     = pow(2, 32 - try(tonumber(split("/", var.settings.network.cidr)[1]), 0)) - 4 >= 4 * var.instances
    error_message = "network.cidr has too few addresses: four for each of ${var.instances} instances (functions x functions.max_instances) and four of Google's own. Take a larger range, as in 10.8.0.0/24, or a smaller functions.max_instances."
  }
  validation {
    condition     = var.settings.network.addresses >= 1 && var.settings.network.addresses <= 8
    error_message = "network.addresses is between 1 and 8."
  }
}

variable "name" {
  description = "The network's name, and what the names of its parts begin with."
  type        = string
}

variable "instances" {
  description = "How many instances of all functions there may be at once."
  type        = number
}
