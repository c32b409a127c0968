variable "project" {
  description = "The Google Cloud project that everything lives in."
  type        = string
}

variable "name" {
  description = "The first part of every name."
  type        = string
}

variable "environment" {
  description = "The second part of every name: dev, prod, ..."
  type        = string
}

variable "clusters" {
  description = "Clusters by the name that keys, messages and alerts use. See the root's variable of the same name."
  type = map(object({
    civo      = optional(object({ region = string, cluster_id = string }))
    gke       = optional(object({ location = string, cluster = string, dns = optional(bool, true), project = optional(string) }))
    mode      = optional(string, "advise")
    kueue     = optional(bool, false)
    reconcile = optional(string, "* * * * *")
    billing   = optional(string, "* * * * *")
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
    condition     = alltrue([for c in values(var.clusters) : c.civo == null || c.gke == null])
    error_message = "A cluster is either Civo's or GKE's: give it civo = {...} or gke = {...}, not both. With neither, its kubeconfig lies in a secret."
  }
  validation {
    condition     = alltrue([for name, c in var.clusters : c.gke == null || try(c.gke.cluster == name, false)])
    error_message = "Call a GKE cluster by its own name here: its events in Cloud Logging carry that name, and would not be taken for another's."
  }
  validation {
    condition     = alltrue([for c in values(var.clusters) : contains(["observe", "advise", "scale-up", "act"], c.mode)])
    error_message = "A cluster's mode is one of observe, advise, scale-up and act. Begin with advise: it decides and tells, and changes nothing."
  }
  validation {
    condition     = alltrue([for c in values(var.clusters) : alltrue([for cron in [c.reconcile, c.billing] : can(regex("^(\\S+ ){4}\\S+$", cron))])])
    error_message = "A schedule is five fields as cron has them: \"* * * * *\" is every minute, \"7 * * * *\" seven minutes past every hour."
  }
}

variable "policy_uri" {
  description = "Where the functions read the policy: gs://BUCKET/OBJECT."
  type        = string
}

variable "state_uri" {
  description = "PILOTLIGHT_STATE: firestore:PROJECT/DATABASE/COLLECTION."
  type        = string
}

variable "alerts_uri" {
  description = "PILOTLIGHT_ALERTS: where alerts on their way lie, which is alert_fanout's state; null: with the rest."
  type        = string
  default     = null
}

variable "telemetry" {
  description = "PILOTLIGHT_TELEMETRY of billing_tick: the address of a Prometheus, or null."
  type        = string
  default     = null
}

variable "bills" {
  description = "PILOTLIGHT_BILLS of billing_tick: civo:REGION, focus:URI, or null."
  type        = string
  default     = null

  validation {
    condition     = var.bills == null || can(regex("^(civo:[A-Z0-9]+|focus:gs://[^/]+/.+)$", var.bills))
    error_message = "bills is civo:REGION, as in civo:LON1, or focus:gs://BUCKET/PREFIX/*.parquet; leave it out where there is no bill to read."
  }
}

variable "channel_secrets" {
  description = "Secrets of alert channels: the variable that the policy names by url_env or token_env, to the secret's name."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.channel_secrets) : can(regex("^[A-Z][A-Z0-9_]*$", name)) && !startswith(name, "PILOTLIGHT_")])
    error_message = "alerts.secrets maps the names of environment variables (capital letters, not beginning with PILOTLIGHT_) to names of secrets, as { SLACK_URL = \"pilotlight-slack\" }."
  }
}

variable "timeout_s" {
  description = "Seconds that one delivery may take."
  type        = number
  default     = 60

  validation {
    condition     = var.timeout_s >= 20 && var.timeout_s <= 540
    error_message = "functions.timeout_s is between 20 and 540 seconds: Pub/Sub waits no longer than 600 for an answer."
  }
}

variable "backoff_s" {
  description = "Seconds between two attempts at one event: the first wait, which doubles, and the longest."
  type        = object({ min = number, max = number })
  default     = { min = 10, max = 600 }

  validation {
    condition     = var.backoff_s.min <= var.backoff_s.max
    error_message = "functions.backoff_s: min is larger than max; the first wait is the shortest."
  }
  validation {
    condition     = var.backoff_s.min >= 1 && var.backoff_s.max <= 600
    error_message = "functions.backoff_s: Pub/Sub waits between 1 and 600 seconds."
  }
}
