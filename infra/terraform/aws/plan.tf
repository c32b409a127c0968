# Names, environments, and how long an event is tried: all that follows from what is given.

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {
  lifecycle {
    postcondition {
      condition     = self.partition == "aws"
      error_message = "Regions of ${self.partition} are not served (aws-cn is China's, aws-us-gov GovCloud's, aws-eusc the European Sovereign Cloud's): choose a region of AWS's own."
    }
  }
}
data "aws_region" "this" {}

module "settings" {
  source = "../modules/settings"

  aws   = var.settings
  given = var.settings
}

locals {
  settings = module.settings.settings

  prefix    = "${local.settings.name}-${local.settings.environment}"
  account   = data.aws_caller_identity.this.account_id
  partition = data.aws_partition.this.partition
  region    = data.aws_region.this.region

  # Per function: what it may do in clusters and at clouds (act, read, bills: reads the bill alone, nothing), and the layer with what it imports.
  every_route = {
    pod_pending        = { role = "act", layer = "base" }
    kueue_admission    = { role = "act", layer = "base" }
    capacity_reconcile = { role = "act", layer = "base" }
    billing_tick       = { role = "read", layer = "base" }
    billing_import     = { role = "bills", layer = "bills" }
    spot_interruption  = { role = "act", layer = "base" }
    alert_fanout       = { role = "none", layer = "alerts" }
  }
  routes = { for function, route in local.every_route : function => route if lookup(local.wanted, function, true) }

  # kueue_admission and its queue are there where a cluster says so, billing_import and its own where a bill is named.
  wanted = {
    kueue_admission = anytrue([for c in values(local.settings.clusters) : c.kueue])
    billing_import  = local.settings.bills != null
  }

  # Who takes what, and for how long an event is worth trying. A tick that is late is worth nothing, for the next one
  # comes; an interruption is over in minutes. Alerts of one pool or finding are told in the order they happened.
  every_queue = {
    pod-events        = { function = "pod_pending", tries_for_s = 3600, ordered = false }
    workload-events   = { function = "kueue_admission", tries_for_s = 3600, ordered = false }
    ticks-reconcile   = { function = "capacity_reconcile", tries_for_s = 300, ordered = false }
    capacity-failures = { function = "capacity_reconcile", tries_for_s = 3600, ordered = false }
    ticks-billing     = { function = "billing_tick", tries_for_s = 300, ordered = false }
    billing           = { function = "billing_tick", tries_for_s = 21600, ordered = false }
    ticks-bills       = { function = "billing_import", tries_for_s = 300, ordered = false }
    bills             = { function = "billing_import", tries_for_s = 21600, ordered = false }
    interruptions     = { function = "spot_interruption", tries_for_s = 600, ordered = false }
    alerts            = { function = "alert_fanout", tries_for_s = 21600, ordered = true }
  }
  queues = { for name, queue in local.every_queue : name => queue if contains(keys(local.routes), queue.function) }

  # billing_import reads an export file by file, and has memory and time of its own for it.
  timeout_s = { for function in keys(local.routes) : function => function == "billing_import" ? local.settings.functions.billing_import.timeout_s : local.settings.functions.timeout_s }

  # A message is tried again so long after it was taken; Lambda asks for no less than its time limit.
  visible_after_s = { for name, queue in local.queues : name => local.timeout_s[queue.function] + 30 }
}

locals {
  upper = { for name in keys(local.settings.clusters) : name => upper(replace(name, "-", "_")) }

  # An EKS cluster is reached by the function's own role; any other by a kubeconfig that a secret holds.
  clusters = {
    for name, c in local.settings.clusters : name => {
      api   = c.eks == null ? "kubeconfig-env:KUBECONFIG_${local.upper[name]}" : "eks:${local.region}/${c.eks.cluster}"
      pools = c.karpenter.claims || (c.eks == null && c.karpenter.limits) ? "karpenter" : c.eks == null ? "advisor" : "asg:${local.region}/${c.eks.cluster}"
      mode  = c.mode
    }
  }
  eks        = { for name, c in local.settings.clusters : name => c.eks.cluster if c.eks != null }
  group_tags = { for name, c in local.settings.clusters : name => c.eks.group_tag if try(c.eks.group_tag, null) != null }

  # The clusters' secrets by role: the variable that names one, to the secret's name. What only reads holds credentials
  # that can only read.
  cluster_secrets = {
    for role, suffix in { act = "", read = "-read" } : role => {
      for name, c in local.settings.clusters : "KUBECONFIG_${local.upper[name]}" => "${local.prefix}-${name}-kubeconfig${suffix}" if c.eks == null
    }
  }
  secrets = {
    for function, route in local.routes : function => route.role == "none" ? local.settings.alerts.secrets : lookup(local.cluster_secrets, route.role, {})
  }

  # What functions read. What they also know, and does not come from here, says why (a test compares both with settings.py).
  environment = {
    PILOTLIGHT_POLICY    = local.policy_uri
    PILOTLIGHT_CLUSTERS  = jsonencode(local.clusters)
    PILOTLIGHT_STATE     = "dynamodb:${aws_dynamodb_table.this["state"].name}"
    PILOTLIGHT_ALERTS    = "dynamodb:${aws_dynamodb_table.this["alerts"].name}"
    PILOTLIGHT_BILLS     = local.settings.bills
    PILOTLIGHT_TELEMETRY = local.settings.telemetry
    PILOTLIGHT_OUTBOX    = "sns:${local.topics_arn}"
    PILOTLIGHT_MODE      = "advise"
  }
  left_out = {
    PILOTLIGHT_API     = "each cluster's is in PILOTLIGHT_CLUSTERS"
    PILOTLIGHT_CATALOG = "the bundle brings its own; the policy adds prices"
    PILOTLIGHT_CLUSTER = "each cluster's name is in PILOTLIGHT_CLUSTERS"
    PILOTLIGHT_HOME    = "nothing is kept on the function's disk"
    PILOTLIGHT_POOLS   = "each cluster's are in PILOTLIGHT_CLUSTERS"
    PILOTLIGHT_TOKEN   = "it is shown by the command line alone"
    PILOTLIGHT_TOKENS  = "nothing is posted to a Lambda: its queues' policies say who may send"
    PILOTLIGHT_WAIT_S  = "ticks name one cluster each"
    PILOTLIGHT_WATCH_S = "a Lambda knows how much time it has left"
    PILOTLIGHT_WORLD   = "a deployment has a real cluster"
  }

  # alert_fanout's state is the alerts' own; the bill is billing_import's, and telemetry billing_tick's.
  readers = { PILOTLIGHT_BILLS = "billing_import", PILOTLIGHT_TELEMETRY = "billing_tick" }
  environments = {
    for function, route in local.routes : function => merge(
      {
        for name, value in merge(local.environment, function == "alert_fanout" ? { PILOTLIGHT_STATE = local.environment.PILOTLIGHT_ALERTS } : {}) :
        name => value if value != null && lookup(local.readers, name, function) == function
      },
      { for name, secret in local.secrets[function] : name => "secretsmanager:${data.aws_secretsmanager_secret.needed[secret].arn}" },
    )
  }
}

# Secrets are made outside, so that no value passes through Terraform or its state. Here they are only looked up, so that
# a missing one is named before anything is built.
data "aws_secretsmanager_secret" "needed" {
  for_each = toset(flatten([for secrets in values(local.secrets) : values(secrets)]))

  name = each.value
}
