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
  description = "The subnetwork's range. Functions take two to four addresses for each instance."
  type        = string

  validation {
    condition     = can(cidrnetmask(var.cidr)) && try(tonumber(split("/", var.cidr)[1]), 99) <= 26
    error_message = "network.cidr is a range of 64 addresses or more, as in 10.8.0.0/26."
  }
}

variable "addresses" {
  description = "How many fixed addresses requests may leave from."
  type        = number

  validation {
    condition     = var.addresses >= 1 && var.addresses <= 8
    error_message = "network.addresses is between 1 and 8."
  }
}
