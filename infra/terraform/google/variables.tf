# What a newcomer gives: project, region, policy_file, clusters and alerts.email. The rest has defaults that work.

variable "project" {
  description = "The Google Cloud project to deploy into: its id, as `gcloud projects list` shows it. Give Pilotlight one of its own."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project is a project's id: 6 to 30 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "region" {
  description = "The Google Cloud region that functions and state are in, near the clusters: europe-west1, us-central1, ..."
  type        = string

  validation {
    condition = contains([
      "africa-south1", "asia-east1", "asia-east2", "asia-northeast1", "asia-northeast2", "asia-northeast3", "asia-south1",
      "asia-south2", "asia-southeast1", "asia-southeast2", "australia-southeast1", "australia-southeast2",
      "europe-central2", "europe-north1", "europe-southwest1", "europe-west1", "europe-west2", "europe-west3",
      "europe-west4", "europe-west6", "europe-west8", "europe-west9", "europe-west10", "europe-west12", "me-central1",
      "me-central2", "me-west1", "northamerica-northeast1", "northamerica-northeast2", "southamerica-east1",
      "southamerica-west1", "us-central1", "us-east1", "us-east4", "us-east5", "us-south1", "us-west1", "us-west2",
      "us-west3", "us-west4",
    ], var.region)
    error_message = "region is no region known here. Write it as Google does, as in europe-west1; a zone such as europe-west1-b is no region."
  }
}

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
  description = "Which deployment this is; the second part of every name. `make deploy ENV=prod` gives it."
  type        = string
  default     = "dev"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{1,3}$", var.environment))
    error_message = "environment has 2 to 4 lower-case letters and digits, as dev, prod or test: accounts' names have room for no more."
  }
}

variable "policy_file" {
  description = "The policy: which pools may be lit, for whom, and what it may cost. A path, seen from infra/terraform. It is the only place for behaviour."
  type        = string

  validation {
    condition     = fileexists(var.policy_file)
    error_message = "policy_file names no file. The path is seen from infra/terraform; begin with a copy of examples/policy.yaml."
  }
}

variable "clusters" {
  description = <<-EOT
    The clusters to look after, each by the name that alerts will use:
      civo       {region, cluster_id} of a Civo cluster, as `civo kubernetes show` prints them
      gke        {location, cluster, project} of a GKE cluster, whose name is also its name here; its project where that is
                 another; dns = false reaches its address instead of its DNS name
                 with neither, the cluster is reached by its kubeconfig, and its pools are advised on only
      mode       observe, advise (the default: decides and tells, changes nothing), scale-up or act
      kueue      true: kueue_admission is deployed too, and the output `connect` also gives the right to answer Kueue's
                 admission checks and to stop its queues
      reconcile  when to look, as cron: every minute
      billing    when to count money, as cron: every minute; less often, and time is told to teams more coarsely
    Secrets are never given here; the output `secrets_to_make` names those that must exist.
  EOT
  type = map(object({
    civo      = optional(object({ region = string, cluster_id = string }))
    gke       = optional(object({ location = string, cluster = string, dns = optional(bool, true), project = optional(string) }))
    mode      = optional(string, "advise")
    kueue     = optional(bool, false)
    reconcile = optional(string, "* * * * *")
    billing   = optional(string, "* * * * *")
  }))
}

variable "alerts" {
  description = <<-EOT
    email    who is told when Pilotlight itself fails: dead letters, failing functions, silence
    secrets  of the policy's channels: variable (url_env, token_env) to the name of the secret that holds it,
             as {SLACK_URL = "pilotlight-slack"}
    figures  true: Pilotlight's own figures reach Cloud Monitoring (Managed Service for Prometheus scrapes the home in a
             cluster, or a collector takes what functions push), and what infra/prometheus alerts on is told here too
  EOT
  type = object({
    email   = string
    secrets = optional(map(string), {})
    figures = optional(bool, false)
  })

  validation {
    condition     = can(regex("^[^@ ]+@[^@ ]+\\.[^@ ]+$", var.alerts.email))
    error_message = "alerts.email is no e-mail address."
  }
}

variable "protected" {
  description = "Whether deleting the state is refused. `make unprotect` sets it to false."
  type        = bool
  default     = true
}

variable "state" {
  description = <<-EOT
    Where state lies: one of
      firestore  {location}: a database in the functions' region unless it says another (the default)
      dynamodb   {}: a table, for functions that run inside a cluster on AWS (network.path = "in-cluster")
    accounts     e-mails of accounts that use the Firestore database beside the functions: that of a home inside a cluster
  EOT
  type = object({
    firestore = optional(object({ location = optional(string) }))
    dynamodb  = optional(object({}))
    accounts  = optional(list(string), [])
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.state.firestore == null || var.state.dynamodb == null
    error_message = "State lies in one place: give state.firestore or state.dynamodb, not both."
  }
  validation {
    condition     = var.state.dynamodb == null || var.network.path == "in-cluster"
    error_message = "Functions on Google Cloud hold no AWS credentials: state.dynamodb goes with network.path = \"in-cluster\"."
  }
  validation {
    condition     = var.state.dynamodb == null || var.aws != null
    error_message = "state.dynamodb needs to know where: give aws = {account_id, region}."
  }
}

variable "network" {
  description = <<-EOT
    How functions reach API servers:
      path = "static-addresses"  from fixed addresses, printed for the cluster's firewall (the default)
      path = "dns-endpoint"      GKE's DNS endpoint, with no network at all; every cluster is GKE's
      path = "in-cluster"        they run inside the cluster (infra/kubernetes/home); only state is made here
    existing = {network, subnetwork} is a network of yours, whose NAT and addresses are yours too; left out, one is made
    with so many addresses, in the range cidr
  EOT
  type = object({
    path      = optional(string, "static-addresses")
    addresses = optional(number, 1)
    cidr      = optional(string, "10.8.0.0/25")
    existing  = optional(object({ network = string, subnetwork = string }))
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["static-addresses", "dns-endpoint", "in-cluster"], var.network.path)
    error_message = "network.path is one of static-addresses, dns-endpoint and in-cluster."
  }
  validation {
    condition     = var.network.path != "dns-endpoint" || alltrue([for c in values(var.clusters) : try(c.gke.dns, false)])
    error_message = "network.path = \"dns-endpoint\" is for GKE clusters reached by DNS: give each cluster gke = {...}, or choose static-addresses."
  }
}

variable "functions" {
  description = "Size and patience of the functions. Defaults are small; a busy cluster raises max_instances. ingress: ALLOW_INTERNAL_ONLY also holds in a VPC Service Controls perimeter; ALLOW_INTERNAL_AND_GCLB lets a load balancer of yours in."
  type = object({
    memory        = optional(string, "512Mi")
    timeout_s     = optional(number, 60)
    min_instances = optional(number, 0)
    max_instances = optional(number, 3)
    concurrency   = optional(number, 8)
    backoff_s     = optional(object({ min = number, max = number }), { min = 10, max = 600 })
    bundles       = optional(string, "../../build")
    rollback_to   = optional(map(string), {})
    ingress       = optional(string, "ALLOW_INTERNAL_ONLY")
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.functions.min_instances <= var.functions.max_instances
    error_message = "functions.min_instances is larger than functions.max_instances."
  }
  validation {
    condition = alltrue([
      for function in ["pod_pending", "kueue_admission", "capacity_reconcile", "billing_tick", "spot_interruption", "alert_fanout"] :
      fileexists("${var.functions.bundles}/${function}.zip")
    ]) || var.network.path == "in-cluster"
    error_message = "Bundles are missing in functions.bundles: run `make package` first."
  }
}

variable "telemetry" {
  description = "The Prometheus that has GPUs' series, read by billing_tick: https://monitoring.googleapis.com/v1/projects/PROJECT/location/global/prometheus (it may then read that project's metrics), or another that functions reach. Left out: telemetry is absent, and no waste is told."
  type        = string
  default     = null

  validation {
    condition     = var.telemetry == null || can(regex("^https?://[^/]+", var.telemetry))
    error_message = "telemetry is the address of a Prometheus, as https://HOST/...; leave it out where functions reach none."
  }
}

variable "bills" {
  description = "What the clouds bill, read by billing_tick: civo:REGION, or focus:gs://BUCKET/PREFIX/*.parquet (it may then read that bucket). Left out, budgets count by the meter."
  type        = string
  default     = null
}

variable "audit" {
  description = "Where the audit chain is carried, by whom: {bucket, account, project, locked}. The account (an e-mail) may then read the decisions and add objects; project: the bucket's, where it is another; locked: with --lock-days. Left out: nobody."
  type = object({
    bucket  = string
    account = string
    project = optional(string)
    locked  = optional(bool, true)
  })
  default = null

  validation {
    condition     = var.audit == null || can(regex("^[a-z0-9][a-z0-9._-]{2,62}$", var.audit.bucket))
    error_message = "audit.bucket is a bucket's name alone, as our-audit."
  }
  validation {
    condition     = var.audit == null || can(regex("^[a-z0-9-]+@[a-z0-9.-]+\\.gserviceaccount\\.com$", var.audit.account))
    error_message = "audit.account is the e-mail of a service account, as exporter@acme-audit.iam.gserviceaccount.com."
  }
  validation {
    condition     = var.audit == null || !contains(try(var.state.accounts, []), try(var.audit.account, ""))
    error_message = "audit.account may not be one of state.accounts: who writes the state must not carry its proof out."
  }
}

variable "encryption" {
  description = "A key of your own in Cloud KMS, in the same region: {key = \"projects/P/locations/L/keyRings/R/cryptoKeys/K\"}. It encrypts state, messages, bundles, images and functions, and secrets that are made with it (README). Left out: Google's keys."
  type        = object({ key = string })
  default     = null

  validation {
    condition     = var.encryption == null || can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.encryption.key))
    error_message = "encryption.key is written projects/P/locations/L/keyRings/R/cryptoKeys/K, as `gcloud kms keys list` prints it."
  }
}

variable "budget" {
  description = "What Pilotlight itself may cost a month, watched by Google: {billing_account, usd_per_month}. Its notices reach billing_tick. Budgets for GPUs are in the policy."
  type = object({
    billing_account = string
    usd_per_month   = number
  })
  default = null

  validation {
    condition     = var.budget == null || try(var.budget.usd_per_month > 0 && floor(var.budget.usd_per_month) == var.budget.usd_per_month, false)
    error_message = "budget.usd_per_month is a whole number of dollars larger than 0; leave budget out to watch nothing."
  }
  validation {
    condition     = var.budget == null || can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", var.budget.billing_account))
    error_message = "budget.billing_account is written as in 012345-6789AB-CDEF01."
  }
}

variable "aws" {
  description = "An AWS account whose spot warnings, health events and failed launches are sent on: {account_id, region}."
  type = object({
    account_id = string
    region     = string
  })
  default = null

  validation {
    condition     = var.aws == null || can(regex("^[0-9]{12}$", var.aws.account_id))
    error_message = "aws.account_id is the account's 12 digits, in quotes."
  }
  validation {
    condition     = var.aws == null || can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.aws.region))
    error_message = "aws.region is written as AWS does, as in eu-west-1."
  }
}

variable "wait_s" {
  description = "Seconds for which new APIs and new rights are left alone before they are used: Google's servers hear of them one after another."
  type        = object({ apis = optional(number, 60), rights = optional(number, 120) })
  default     = {}
  nullable    = false
}
