# Seven of these make a deployment: project, region, policy_file, a cluster and its address, and alerts.email. Types and
# refusals are in google/variables.tf, where null is the default, and so are the descriptions: scripts/terraform_tables.py
# copies them here.

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
  description = "The policy: which pools may be lit, for whom, and what it may cost. A path, seen from infra/terraform. It is the only place for behaviour."
  type        = string
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
  type        = any
}

variable "alerts" {
  description = <<-EOT
    email    who is told when Pilotlight itself fails: dead letters, failing functions, silence
    secrets  of the policy's channels: variable (url_env, token_env) to the name of the secret that holds it,
             as {SLACK_URL = "pilotlight-slack"}
    figures  true: Pilotlight's own figures reach Cloud Monitoring (Managed Service for Prometheus scrapes the home in a
             cluster, or a collector takes what functions push), and what infra/prometheus alerts on is told here too
  EOT
  type        = any
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
  type        = any
  default     = null
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
  type        = any
  default     = null
}

variable "functions" {
  description = "Size and patience of the functions. Defaults are small; a busy cluster raises max_instances. ingress: ALLOW_INTERNAL_ONLY also holds in a VPC Service Controls perimeter; ALLOW_INTERNAL_AND_GCLB lets a load balancer of yours in."
  type        = any
  default     = null
}

variable "telemetry" {
  description = "The Prometheus that has GPUs' series, read by billing_tick: https://monitoring.googleapis.com/v1/projects/PROJECT/location/global/prometheus (it may then read that project's metrics), or another that functions reach. Left out: telemetry is absent, and no waste is told."
  type        = string
  default     = null
}

variable "bills" {
  description = "What the clouds bill, read by billing_tick: civo:REGION, or focus:gs://BUCKET/PREFIX/*.parquet (it may then read that bucket). Left out, budgets count by the meter."
  type        = string
  default     = null
}

variable "audit" {
  description = "Where the audit chain is carried, by whom: {bucket, account, project, locked}. The account (an e-mail) may then read the decisions and add objects; project: the bucket's, where it is another; locked: with --lock-days. Left out: nobody."
  type        = any
  default     = null
}

variable "budget" {
  description = "What Pilotlight itself may cost a month, watched by Google: {billing_account, usd_per_month}. Its notices reach billing_tick. Budgets for GPUs are in the policy."
  type        = any
  default     = null
}

variable "encryption" {
  description = "A key of your own in Cloud KMS, in the same region: {key = \"projects/P/locations/L/keyRings/R/cryptoKeys/K\"}. It encrypts state, messages, bundles, images and functions, and secrets that are made with it (README). Left out: Google's keys."
  type        = any
  default     = null
}

variable "aws" {
  description = "An AWS account whose spot warnings, health events and failed launches are sent on: {account_id, region}."
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
