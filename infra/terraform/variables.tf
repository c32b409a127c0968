# Seven of these make a deployment: project, region, policy_file, a cluster and its address, and alerts.email. What each
# holds, and what is refused, is in google/variables.tf; null is its default there.

variable "project" {
  description = "The Google Cloud project to deploy into: its id, as `gcloud projects list` shows it. Give Pilotlight one of its own."
  type        = string
}

variable "region" {
  description = "The Google Cloud region that functions and state are in, near the clusters: europe-west1, us-central1, ..."
  type        = string
}

variable "name" {
  description = "The first part of every name."
  type        = string
  default     = "pilotlight"
}

variable "environment" {
  description = "Which deployment this is; the second part of every name. `make deploy ENV=prod` gives it."
  type        = string
  default     = "dev"
}

variable "policy_file" {
  description = "The policy: which pools may be lit, for whom, and what it may cost. A path, seen from infra/terraform."
  type        = string
}

variable "clusters" {
  description = "The clusters to look after, each by the name that alerts will use: {ml = {civo = {...}}} or {ml = {gke = {...}}}."
  type        = any
}

variable "alerts" {
  description = "{email, secrets}: who is told when Pilotlight itself fails, and the secrets of the policy's channels."
  type        = any
}

variable "protected" {
  description = "Whether deleting the state is refused. `make unprotect` sets it to false."
  type        = bool
  default     = true
}

variable "state" {
  description = "{firestore} or {dynamodb}, and accounts: where state lies, and who else uses it."
  type        = any
  default     = null
}

variable "network" {
  description = "{path, addresses, cidr, existing}: how functions reach API servers."
  type        = any
  default     = null
}

variable "functions" {
  description = "Size and patience of the functions, and what may call them: {memory, timeout_s, max_instances, ingress, ...}."
  type        = any
  default     = null
}

variable "bills" {
  description = "What the clouds bill, for budgets and the report: civo:REGION, or focus:gs://BUCKET/PREFIX/*.parquet."
  type        = string
  default     = null
}

variable "budget" {
  description = "{billing_account, usd_per_month}: what Pilotlight itself may cost, watched by Google."
  type        = any
  default     = null
}

variable "encryption" {
  description = "{key}: a key of your own in Cloud KMS, in the same region, for all that is stored. Left out: Google's keys."
  type        = any
  default     = null
}

variable "aws" {
  description = "{account_id, region}: an AWS account whose spot warnings, health events and failed launches are sent on."
  type        = any
  default     = null
}

variable "labels" {
  description = "Labels (tags on AWS) of everything that can have some, as {team = \"ml\"}."
  type        = map(string)
  default     = { app = "pilotlight" }
}

variable "adopt" {
  description = "What an earlier deployment of this name left behind and this one takes over: database, aws (the identity pool)."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.adopt, ["database", "aws"])) == 0
    error_message = "adopt names what is taken over: database, aws."
  }
}
