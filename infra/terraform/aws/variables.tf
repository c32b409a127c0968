# What a newcomer gives: policy_file, clusters and alerts.email. The rest has defaults that work. The region is the provider's.

variable "name" {
  description = "The first part of every name."
  type        = string
  default     = "pilotlight"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{1,9}$", var.name))
    error_message = "name has 2 to 10 lower-case letters and digits and begins with a letter."
  }
}

variable "environment" {
  description = "Which deployment this is; the second part of every name. `make deploy CLOUD=aws ENV=prod` gives it."
  type        = string
  default     = "dev"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{1,3}$", var.environment))
    error_message = "environment has 2 to 4 lower-case letters and digits, as dev, prod or test."
  }
}

variable "policy_file" {
  description = "The policy: which pools may be lit, for whom, and what it may cost. It is the only place for behaviour; price files that it names lie beside it."
  type        = string

  validation {
    condition     = fileexists(var.policy_file)
    error_message = "policy_file names no file. The path is seen from where terraform runs; begin with a copy of examples/eks/policy.yaml."
  }
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
  type = map(object({
    eks       = optional(object({ cluster = string }))
    mode      = optional(string, "advise")
    kueue     = optional(bool, false)
    reconcile = optional(string, "rate(1 minute)")
    billing   = optional(string, "rate(1 minute)")
  }))

  validation {
    condition     = length(var.clusters) > 0
    error_message = "clusters is empty: name at least one cluster."
  }
  validation {
    condition     = alltrue([for name in keys(var.clusters) : can(regex("^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$", name))])
    error_message = "A cluster's name has lower-case letters, digits and hyphens, begins with a letter, does not end with a hyphen, and is at most 20 long."
  }
  validation {
    condition     = alltrue([for c in values(var.clusters) : contains(["observe", "advise", "scale-up", "act"], c.mode)])
    error_message = "A cluster's mode is one of observe, advise, scale-up and act. Begin with advise: it decides and tells, and changes nothing."
  }
  validation {
    condition     = alltrue([for c in values(var.clusters) : alltrue([for when in [c.reconcile, c.billing] : can(regex("^(rate|cron)\\(.+\\)$", when))])])
    error_message = "A schedule is written as the Scheduler does: rate(1 minute), rate(5 minutes), cron(0 * * * ? *)."
  }
}

variable "alerts" {
  description = "{email, secrets}: who is told when Pilotlight itself fails, and the secrets of the policy's channels: the variable that the policy names (url_env, token_env), to the secret's name."
  type = object({
    email   = string
    secrets = optional(map(string), {})
  })

  validation {
    condition     = can(regex("^[^@ ]+@[^@ ]+[.][^@ ]+$", var.alerts.email))
    error_message = "alerts.email is an address, as ops@example.com: somebody must hear when Pilotlight itself fails."
  }
  validation {
    condition     = alltrue([for name in keys(var.alerts.secrets) : can(regex("^[A-Z][A-Z0-9_]*$", name)) && !startswith(name, "PILOTLIGHT_") && !startswith(name, "AWS_")])
    error_message = "alerts.secrets maps the names of environment variables (capital letters, not beginning with PILOTLIGHT_ or AWS_) to names of secrets, as { SLACK_URL = \"pilotlight-slack\" }."
  }
}

variable "protected" {
  description = "Whether deleting the state is refused. `make unprotect CLOUD=aws` sets it to false."
  type        = bool
  default     = true
}

variable "functions" {
  description = "Size and patience of the functions. Defaults are small; a busy deployment raises max_instances. bundles: the folder that `make package` writes."
  type = object({
    memory_mb     = optional(number, 512)
    timeout_s     = optional(number, 60)
    max_instances = optional(number, 3)
    bundles       = optional(string, "../../../../build")
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.functions.timeout_s >= 20 && var.functions.timeout_s <= 600
    error_message = "functions.timeout_s is between 20 and 600 seconds."
  }
  validation {
    condition     = var.functions.max_instances >= 2
    error_message = "functions.max_instances is at least 2: Lambda takes no less of a queue."
  }
  validation {
    condition = alltrue([
      for file in ["pod_pending", "kueue_admission", "capacity_reconcile", "billing_tick", "spot_interruption", "alert_fanout", "layer-base", "layer-alerts", "layer-bills"] :
      fileexists("${var.functions.bundles}/${file}.zip")
    ])
    error_message = "Bundles or layers are missing in functions.bundles: run `make package CLOUD=aws` first."
  }
}

variable "network" {
  description = "{subnets, security_groups}: where functions run to reach API servers that have no public address. The subnets need a way to AWS's own services. Left out: outside of any VPC."
  type = object({
    subnets         = set(string)
    security_groups = set(string)
  })
  default = null

  validation {
    condition     = var.network == null || try(length(var.network.subnets) > 0 && length(var.network.security_groups) > 0, false)
    error_message = "network names at least one subnet and one security group; leave it out where the API server has a public address."
  }
}

variable "telemetry" {
  description = "The Prometheus that has GPUs' series, read by billing_tick: https://aps-workspaces.REGION.amazonaws.com/workspaces/ID of this account (it may then query that workspace), or another that functions reach. Left out: telemetry is absent, and no waste is told."
  type        = string
  default     = null

  validation {
    condition     = var.telemetry == null || can(regex("^https?://[^/]+", var.telemetry))
    error_message = "telemetry is the address of a Prometheus, as https://HOST/...; leave it out where functions reach none."
  }
}

variable "bills" {
  description = "What AWS bills, read by billing_tick: focus:s3://BUCKET/PREFIX/*.parquet (it may then read that bucket). Left out, budgets count by the meter."
  type        = string
  default     = null

  validation {
    condition     = var.bills == null || can(regex("^focus:s3://[a-z0-9.-]+/.+$", var.bills))
    error_message = "bills is focus:s3://BUCKET/PREFIX/*.parquet; leave it out where there is no bill to read."
  }
}

variable "budget" {
  description = "{usd_per_month, tag}: what Pilotlight itself may cost before alerts.email is told, at 50, 80 and 100 %. AWS counts what carries the tag, once it is activated as a cost allocation tag. Left out: no budget."
  type = object({
    usd_per_month = number
    tag           = optional(string, "user:app$pilotlight")
  })
  default = null

  validation {
    condition     = var.budget == null || try(var.budget.usd_per_month > 0, false)
    error_message = "budget.usd_per_month is more than 0; leave budget out for none."
  }
  validation {
    condition     = var.budget == null || can(regex("^user:[^$]+[$].+$", var.budget.tag))
    error_message = "budget.tag is written as AWS Budgets does, as user:app$pilotlight: the key and the value of a tag in labels."
  }
}

variable "audit" {
  description = "Where the audit chain is carried: {bucket, folder, locked}. Makes a policy for whoever runs `pilotlight audit export`; locked: with --lock-days, in a bucket with Object Lock. Left out: none."
  type = object({
    bucket = string
    folder = optional(string, "pilotlight")
    locked = optional(bool, true)
  })
  default = null

  validation {
    condition     = var.audit == null || can(regex("^[a-z0-9][a-z0-9.-]{2,62}$", var.audit.bucket))
    error_message = "audit.bucket is a bucket's name alone, as our-audit."
  }
}

variable "encryption" {
  description = "A key of your own in KMS, in the same region: {key = \"arn:aws:kms:REGION:ACCOUNT:key/ID\"}. It encrypts state, queues, topics, logs, policies and functions' environments; the output `key_policy` is what the key's policy must let in, and secrets are made with it. Left out: AWS's keys."
  type        = object({ key = string })
  default     = null

  validation {
    condition     = var.encryption == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", var.encryption.key))
    error_message = "encryption.key is the key's ARN, as `aws kms describe-key` prints it; an alias can be moved to another key."
  }
}
