# Everything that can be worked out without a cloud: names, environments, filters, how long an event is tried. No
# provider is used here, so that all of it is tested by itself.

module "settings" {
  source = "../settings"

  google = var.settings
  given  = var.settings
}

locals {
  settings = module.settings.settings

  prefix = "${local.settings.name}-${local.settings.environment}"

  # kueue_admission and its topic are there where a cluster says so.
  kueue    = anytrue([for c in values(local.settings.clusters) : c.kueue])
  of_kueue = local.kueue ? [] : ["kueue_admission", "workload-events"]
  # billing_import and its topic are there where a bill is named.
  of_bills = local.settings.bills != null ? [] : ["billing_import", "bills"]
  left     = concat(local.of_kueue, local.of_bills)

  # Messages come in on the first seven and go out on the last three.
  every_topic = {
    pod-events        = { dead_letters = true, kept = false }
    workload-events   = { dead_letters = true, kept = false }
    interruptions     = { dead_letters = true, kept = false }
    capacity-failures = { dead_letters = true, kept = false }
    billing           = { dead_letters = true, kept = false }
    bills             = { dead_letters = true, kept = false }
    ticks             = { dead_letters = true, kept = false }
    alerts            = { dead_letters = true, kept = false }
    capacity          = { dead_letters = false, kept = false }
    dead-letter       = { dead_letters = false, kept = true }
  }
  topics = { for name, topic in local.every_topic : name => topic if !contains(local.left, name) }

  # Which function takes what, and for how long an event is worth trying. `slug` keeps accounts within 30 letters; `role`
  # is what it may do in clusters and at clouds: act, read, read the bill alone, or nothing.
  # A tick that is late is worth nothing, for the next one comes; an interruption is over in minutes.
  every_route = {
    pod_pending = {
      slug    = "pending", role = "act"
      listens = { pod-events = { filter = "", tries_for_s = 3600 } }
    }
    kueue_admission = {
      slug    = "kueue", role = "act"
      listens = { workload-events = { filter = "", tries_for_s = 3600 } }
    }
    capacity_reconcile = {
      slug = "reconcile", role = "act"
      listens = {
        ticks             = { filter = "attributes.tick = \"reconcile\"", tries_for_s = 300 }
        capacity-failures = { filter = "", tries_for_s = 3600 }
      }
    }
    billing_tick = {
      slug = "billing", role = "read"
      listens = {
        ticks   = { filter = "attributes.tick = \"billing\"", tries_for_s = 300 }
        billing = { filter = "", tries_for_s = 21600 }
      }
    }
    billing_import = {
      slug = "bills", role = "bills"
      listens = {
        ticks = { filter = "attributes.tick = \"bills\"", tries_for_s = 300 }
        bills = { filter = "", tries_for_s = 21600 }
      }
    }
    spot_interruption = {
      slug    = "spot", role = "act"
      listens = { interruptions = { filter = "", tries_for_s = 600 } }
    }
    alert_fanout = {
      slug    = "alerts", role = "none"
      listens = { alerts = { filter = "", tries_for_s = 21600 } }
    }
  }
  routes = { for function, route in local.every_route : function => route if !contains(local.left, function) }

  # The waits before attempts 2 to 100, and what the first n of them come to.
  waits   = [for n in range(99) : min(local.settings.functions.backoff_s.max, local.settings.functions.backoff_s.min * pow(2, min(n, 20)))]
  elapsed = [for n in range(99) : sum(slice(local.waits, 0, n + 1))]

  # The fewest attempts, of Pub/Sub's 5 to 100, that go on for at least so long.
  attempts = {
    for seconds in distinct(flatten([for route in values(local.routes) : [for to in values(route.listens) : to.tries_for_s]])) :
    tostring(seconds) => min(100, max(5, 2 + length([for passed in local.elapsed : passed if passed < seconds])))
  }

  # billing_import reads an export file by file, and has memory and time of its own for it.
  memory    = { for function in keys(local.routes) : function => function == "billing_import" ? local.settings.functions.billing_import.memory : local.settings.functions.memory }
  timeout_s = { for function in keys(local.routes) : function => function == "billing_import" ? local.settings.functions.billing_import.timeout_s : local.settings.functions.timeout_s }
}

locals {
  upper = { for name in keys(local.settings.clusters) : name => upper(replace(name, "-", "_")) }

  gke_project = { for name, c in local.settings.clusters : name => coalesce(c.gke.project, local.settings.project) if c.gke != null }

  # A GKE cluster is reached by the function's own account; any other by a kubeconfig that a secret holds.
  api = {
    for name, c in local.settings.clusters : name => (
      c.gke == null ? "kubeconfig-env:KUBECONFIG_${local.upper[name]}" :
      "gke:projects/${local.gke_project[name]}/locations/${c.gke.location}/clusters/${c.gke.cluster}${c.gke.dns ? "?dns" : ""}"
    )
  }

  clusters = {
    for name, c in local.settings.clusters : name => merge(
      { api = local.api[name], mode = c.mode },
      c.civo == null ? {
        pools     = try(c.gke.buys, false) ? "gke:${local.gke_project[name]}/${c.gke.location}/${c.gke.cluster}" : c.karpenter.limits || c.karpenter.claims ? "karpenter" : "advisor"
        token_env = null
        } : {
        pools     = "civo:${c.civo.region}/${c.civo.cluster_id}"
        token_env = "CIVO_TOKEN_${local.upper[name]}"
      },
    )
  }

  civo_bills = startswith(coalesce(local.settings.bills, "none"), "civo:")

  # The clusters' secrets by role: the variable that holds one, to the secret's name. What only reads holds credentials
  # that can only read; who reads the bill reaches no cluster, and has a cloud's token where that cloud tells its charges.
  cluster_secrets = {
    for role, suffix in { act = "", read = "-read", bills = "-read" } : role => merge([
      for name, c in local.settings.clusters : merge(
        c.gke != null || role == "bills" ? {} : { "KUBECONFIG_${local.upper[name]}" = "${local.prefix}-${name}-kubeconfig${suffix}" },
        c.civo == null || (role == "bills" && !local.civo_bills) ? {} : { "CIVO_TOKEN_${local.upper[name]}" = "${local.prefix}-${name}-civo-token${suffix}" },
      )
    ]...)
  }

  # What functions read. What they also know, and does not come from here, says why (a test compares both with settings.py).
  environment = {
    PILOTLIGHT_POLICY    = var.policy_uri
    PILOTLIGHT_CLUSTERS  = jsonencode({ for name, c in local.clusters : name => { for key, value in c : key => value if value != null } })
    PILOTLIGHT_STATE     = var.state_uri
    PILOTLIGHT_ALERTS    = var.alerts_uri
    PILOTLIGHT_BILLS     = local.settings.bills
    PILOTLIGHT_TELEMETRY = local.settings.telemetry
    PILOTLIGHT_OUTBOX    = "pubsub:${local.settings.project}/${local.prefix}"
    PILOTLIGHT_MODE      = "advise"
    PILOTLIGHT_WATCH_S   = tostring(min(58, local.settings.functions.timeout_s - 15))
  }
  left_out = {
    PILOTLIGHT_API     = "each cluster's is in PILOTLIGHT_CLUSTERS"
    PILOTLIGHT_CATALOG = "the bundle brings its own; the policy adds prices"
    PILOTLIGHT_CLUSTER = "each cluster's name is in PILOTLIGHT_CLUSTERS"
    PILOTLIGHT_HOME    = "nothing is kept on the function's disk"
    PILOTLIGHT_POOLS   = "each cluster's are in PILOTLIGHT_CLUSTERS"
    PILOTLIGHT_TOKEN   = "it is shown by the command line alone"
    PILOTLIGHT_TOKENS  = "the cloud's authentication says who may post"
    PILOTLIGHT_WAIT_S  = "ticks name one cluster each"
    PILOTLIGHT_WORLD   = "a deployment has a real cluster"
  }
}

locals {
  # alert_fanout's state is the alerts' own; the bill is billing_import's, and telemetry billing_tick's.
  readers = { PILOTLIGHT_BILLS = "billing_import", PILOTLIGHT_TELEMETRY = "billing_tick" }
  environments = {
    for function, route in local.routes : function => {
      for name, value in merge(local.environment, function == "alert_fanout" ? { PILOTLIGHT_STATE = var.alerts_uri } : {}) :
      name => value if value != null && lookup(local.readers, name, function) == function
    }
  }

  functions = {
    for function, route in local.routes : function => {
      name        = "${local.prefix}-${replace(function, "_", "-")}"
      account     = "${local.prefix}-${route.slug}"
      invoker     = "${local.prefix}-${route.slug}-push"
      memory      = local.memory[function]
      timeout_s   = local.timeout_s[function]
      environment = local.environments[function]
      secrets     = route.role == "none" ? local.settings.alerts.secrets : local.cluster_secrets[route.role]
      publishes   = ["alerts", "capacity", "dead-letter"]
      subscriptions = {
        for topic, to in route.listens : topic => {
          name           = "${local.prefix}-${topic}-${route.slug}"
          filter         = to.filter
          attempts       = local.attempts[tostring(to.tries_for_s)]
          ack_deadline_s = max(10, min(600, local.timeout_s[function] + 10))
          # Pub/Sub keeps a message for at least ten minutes.
          retention_s = max(600, 2 * to.tries_for_s)
          # What is told of one pool or finding is told in the order it happened; looks need no order.
          ordered = topic == "alerts"
        }
      }
    }
  }

  schedules = merge([
    for name, c in local.settings.clusters : merge(
      {
        "${name}-reconcile" = { name = "${local.prefix}-${name}-reconcile", cron = c.reconcile, cluster = name, tick = "reconcile" }
        "${name}-billing"   = { name = "${local.prefix}-${name}-billing", cron = c.billing, cluster = name, tick = "billing" }
      },
      # A read that was cut off goes on at the next of these.
      {
        for tick in local.settings.bills == null ? [] : ["bills"] :
        "${name}-${tick}" => { name = "${local.prefix}-${name}-${tick}", cron = "*/10 * * * *", cluster = name, tick = tick }
      },
    )
  ]...)

  # Log sinks of GKE clusters. Public filters disagree on resource.type, so none is asked for.
  gke = { for name, c in local.settings.clusters : name => c.gke if c.gke != null }
  where = {
    for name, c in local.gke : name => join(" AND ", [
      "resource.labels.cluster_name=\"${c.cluster}\"", "resource.labels.location=\"${c.location}\""
    ])
  }
  sinks = merge(
    {
      for name, place in local.where : "${name}-failed-scheduling" => {
        project = local.gke_project[name], name = "${local.prefix}-${name}-failed-scheduling", topic = "pod-events"
        filter  = "log_id(\"events\") AND jsonPayload.reason=\"FailedScheduling\" AND ${place}"
      }
    },
    {
      for name, place in local.where : "${name}-quota-reserved" => {
        project = local.gke_project[name], name = "${local.prefix}-${name}-quota-reserved", topic = "workload-events"
        filter = join(" AND ", [
          "log_id(\"events\") AND jsonPayload.reason=\"QuotaReserved\" AND jsonPayload.involvedObject.kind=\"Workload\"", place,
        ])
      } if local.settings.clusters[name].kueue
    },
    {
      for name, place in local.where : "${name}-scale-up-errors" => {
        project = local.gke_project[name], name = "${local.prefix}-${name}-scale-up-errors", topic = "capacity-failures"
        filter = join(" AND ", [
          "log_id(\"container.googleapis.com/cluster-autoscaler-visibility\")",
          "jsonPayload.resultInfo.results.errorMsg.messageId=~\"^scale\\.up\\.error\\.\"", place,
        ])
      }
    },
    {
      for project in distinct(values(local.gke_project)) : "${project}-preemptions" => {
        project = project, name = "${local.prefix}-preemptions", topic = "interruptions"
        filter = join(" ", [
          "log_id(\"cloudaudit.googleapis.com/system_event\") AND protoPayload.methodName=(\"compute.instances.preempted\"",
          "OR \"compute.instances.terminateOnHostMaintenance\" OR \"compute.instances.hostError\")",
        ])
      }
    },
  )

  # Who asks GKE where its clusters are: each function that reaches clusters, in each of their projects.
  reaches_gke = merge([
    for function, route in local.routes : {
      for project in distinct(values(local.gke_project)) : "${function}-${project}" => { function = function, project = project }
    } if contains(["act", "read"], route.role)
  ]...)

  # Who reads the groups of a GKE cluster's node pools, and who changes them. GKE calls them gke-CLUSTER-POOL-HASH-grp; of a
  # long name it cuts the end. A cluster's name alone is how those of prod-eu begin, too: node pools that are named are tighter.
  buys_gke = merge([
    for function, route in local.routes : {
      for name, c in local.gke : "${function}-${name}" => {
        function = function
        project  = local.gke_project[name]
        acts     = route.role == "act"
        groups = length(c.cluster) > 15 ? ["gke-${substr(c.cluster, 0, 15)}"] : [
          for pool in(length(c.pools) > 0 ? c.pools : [""]) :
          pool == "" ? "gke-${c.cluster}-" : length(pool) > 15 ? "gke-${c.cluster}-${substr(pool, 0, 15)}" : "gke-${c.cluster}-${pool}-"
        ]
      } if c.buys
    } if contains(["act", "read"], route.role)
  ]...)
}
