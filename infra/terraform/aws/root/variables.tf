# Five of these make a deployment: region, policy_file, a cluster and its name at EKS, and alerts.email. Types and refusals are
# in ../variables.tf, where null is the default, and so are the descriptions: scripts/terraform_tables.py copies them here.

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
  description = "The policy: which pools may be lit, for whom, and what it may cost. It is the only place for behaviour; price files that it names lie beside it."
  type        = string
}

variable "clusters" {
  description = <<-EOT
    The clusters to look after, each by the name that alerts and the cluster's event exporter use:
      eks        {cluster} of an EKS cluster in this region, by its name there: its node groups are acted on
                 without it, the cluster is reached by a kubeconfig that a secret holds, and its pools are advised on only
      mode       observe, advise (the default: decides and tells, changes nothing), scale-up or act
      kueue      true: kueue_admission is deployed too, and the output `connect` also gives the right to answer Kueue's
                 admission checks and to stop its queues
      reconcile  when to look, as the Scheduler writes it: rate(1 minute)
      billing    when to count money: rate(1 minute); less often, and time is told to teams more coarsely
    Secrets are never given here; the output `secrets_to_make` names those that must exist.
  EOT
  type        = any
}

variable "alerts" {
  description = "{email, secrets}: who is told when Pilotlight itself fails, and the secrets of the policy's channels: the variable that the policy names (url_env, token_env), to the secret's name."
  type        = any
}

variable "protected" {
  description = "Whether deleting the state is refused. `make unprotect CLOUD=aws` sets it to false."
  type        = bool
  default     = true
}

variable "functions" {
  description = "Size and patience of the functions. Defaults are small; a busy deployment raises max_instances. bundles: the folder that `make package` writes."
  type        = any
  default     = null
}

variable "network" {
  description = "{subnets, security_groups}: where functions run to reach API servers that have no public address. The subnets need a way to AWS's own services. Left out: outside of any VPC."
  type        = any
  default     = null
}

variable "telemetry" {
  description = "The Prometheus that has GPUs' series, read by billing_tick: https://aps-workspaces.REGION.amazonaws.com/workspaces/ID of this account (it may then query that workspace), or another that functions reach. Left out: telemetry is absent, and no waste is told."
  type        = string
  default     = null
}

variable "bills" {
  description = "What AWS bills, read by billing_tick: focus:s3://BUCKET/PREFIX/*.parquet (it may then read that bucket). Left out, budgets count by the meter."
  type        = string
  default     = null
}

variable "budget" {
  description = "{usd_per_month, tag}: what Pilotlight itself may cost before alerts.email is told, at 50, 80 and 100 %. AWS counts what carries the tag, once it is activated as a cost allocation tag. Left out: no budget."
  type        = any
  default     = null
}

variable "audit" {
  description = "Where the audit chain is carried: {bucket, folder, locked}. Makes a policy for whoever runs `pilotlight audit export`; locked: with --lock-days, in a bucket with Object Lock. Left out: none."
  type        = any
  default     = null
}

variable "encryption" {
  description = "A key of your own in KMS, in the same region: {key = \"arn:aws:kms:REGION:ACCOUNT:key/ID\"}. It encrypts state, queues, topics, logs, policies and functions' environments; the output `key_policy` is what the key's policy must let in, and secrets are made with it. Left out: AWS's keys."
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
