# Five of these make a deployment: region, policy_file, a cluster and its name at EKS, and alerts.email. What each holds, and
# what is refused, is in ../variables.tf; null is its default there.

variable "region" {
  description = "The AWS region that everything is in, which is the clusters': eu-west-1, us-east-1, ..."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region is written as AWS does, as in eu-west-1; a zone such as eu-west-1a is no region."
  }
}

variable "name" {
  description = "The first part of every name."
  type        = string
  default     = "pilotlight"
}

variable "environment" {
  description = "Which deployment this is; the second part of every name. `make deploy CLOUD=aws ENV=prod` gives it."
  type        = string
  default     = "dev"
}

variable "policy_file" {
  description = "The policy: which pools may be lit, for whom, and what it may cost. A path, seen from infra/terraform/aws/root."
  type        = string
}

variable "clusters" {
  description = "The clusters to look after, each by the name that alerts will use: {ml = {eks = {cluster = \"prod\"}}}."
  type        = any
}

variable "alerts" {
  description = "{email, secrets}: who is told when Pilotlight itself fails, and the secrets of the policy's channels."
  type        = any
}

variable "protected" {
  description = "Whether deleting the state is refused. `make unprotect CLOUD=aws` sets it to false."
  type        = bool
  default     = true
}

variable "functions" {
  description = "Size and patience of the functions: {memory_mb, timeout_s, max_instances, bundles}."
  type        = any
  default     = null
}

variable "network" {
  description = "{subnets, security_groups}: where functions run to reach API servers that have no public address."
  type        = any
  default     = null
}

variable "bills" {
  description = "What AWS bills, for budgets and the report: focus:s3://BUCKET/PREFIX/*.parquet."
  type        = string
  default     = null
}

variable "budget" {
  description = "{usd_per_month, tag}: what Pilotlight itself may cost before alerts.email is told. `tag` names one of labels."
  type        = any
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
