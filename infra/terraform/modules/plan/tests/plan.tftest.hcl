variables {
  policy_uri = "gs://acme/policy.yaml"
  state_uri  = "firestore:acme-pilotlight/pilotlight-dev/pilotlight"
  settings = {
    project     = "acme-pilotlight"
    region      = "europe-west1"
    policy_file = "../../examples/civo/policy.yaml"
    clusters = {
      ml    = { civo = { region = "LON1", cluster_id = "c-1" } }
      batch = { gke = { location = "europe-west1", cluster = "batch", project = "acme-clusters" }, mode = "act", reconcile = "*/2 * * * *" }
      edge  = {}
    }
    alerts    = { email = "ops@example.com", secrets = { SLACK_URL = "pilotlight-slack" } }
    functions = { bundles = "../../google/tests/bundles" }
  }
}

run "a_cluster_has_its_own_credential_mode_and_address" {
  command = plan
  assert {
    condition = jsondecode(output.functions["pod_pending"].environment.PILOTLIGHT_CLUSTERS) == {
      ml    = { api = "kubeconfig-env:KUBECONFIG_ML", mode = "advise", pools = "civo:LON1/c-1", token_env = "CIVO_TOKEN_ML" }
      batch = { api = "gke:projects/acme-clusters/locations/europe-west1/clusters/batch?dns", mode = "act", pools = "advisor" }
      edge  = { api = "kubeconfig-env:KUBECONFIG_EDGE", mode = "advise", pools = "advisor" }
    }
    error_message = "PILOTLIGHT_CLUSTERS must say of each cluster how it is reached, who sells nodes, and its mode"
  }
  assert {
    condition     = output.cluster_secrets["act"] == tomap({ KUBECONFIG_ML = "pilotlight-dev-ml-kubeconfig", CIVO_TOKEN_ML = "pilotlight-dev-ml-civo-token", KUBECONFIG_EDGE = "pilotlight-dev-edge-kubeconfig" })
    error_message = "a Civo cluster has a secret for its kubeconfig and one for its token; a GKE cluster needs none: the function's own account is let in"
  }
  assert {
    condition     = output.cluster_secrets["read"] == tomap({ for name, secret in output.cluster_secrets["act"] : name => "${secret}-read" })
    error_message = "what only reads has credentials of its own"
  }
}

run "a_gke_cluster_is_bought_from_where_it_says_so" {
  command = plan
  variables {
    settings = merge(var.settings, {
      clusters = {
        batch                  = { gke = { location = "europe-west1", cluster = "batch", project = "acme-clusters", buys = true } }
        prod                   = { gke = { location = "europe-west1", cluster = "prod", buys = true, pools = ["l4", "a-pool-of-20-abcdefg"] } }
        "a-cluster-of-20-abcd" = { gke = { location = "europe-west1-b", cluster = "a-cluster-of-20-abcd", buys = true } }
        still                  = { gke = { location = "europe-west1", cluster = "still" } }
      }
    })
  }
  assert {
    condition = { for name, c in jsondecode(output.functions["pod_pending"].environment.PILOTLIGHT_CLUSTERS) : name => c.pools } == {
      batch                  = "gke:acme-clusters/europe-west1/batch"
      "a-cluster-of-20-abcd" = "gke:acme-pilotlight/europe-west1-b/a-cluster-of-20-abcd"
      prod                   = "gke:acme-pilotlight/europe-west1/prod"
      still                  = "advisor"
    }
    error_message = "its pools are GKE's where buys is true, and advised on only without it"
  }
  assert {
    condition     = output.buys_gke["pod_pending-batch"] == { function = "pod_pending", project = "acme-clusters", acts = true, groups = ["gke-batch-"] }
    error_message = "a function that acts changes the cluster's groups, and no other's"
  }
  assert {
    condition     = output.buys_gke["pod_pending-a-cluster-of-20-abcd"].groups == ["gke-a-cluster-of-20"]
    error_message = "GKE cuts a long name: so does what the names of groups begin with"
  }
  assert {
    condition     = join(" ", output.buys_gke["pod_pending-prod"].groups) == "gke-prod-l4- gke-prod-a-pool-of-20-ab"
    error_message = "node pools that are named are all whose groups it changes: none of a cluster prod-eu"
  }
  assert {
    condition     = !output.buys_gke["billing_tick-batch"].acts && !contains(keys(output.buys_gke), "alert_fanout-batch") && !contains(keys(output.buys_gke), "pod_pending-still")
    error_message = "billing_tick reads; alert_fanout has no cluster; without buys there is no right"
  }
}

run "karpenter_of_a_cluster_elsewhere_is_reached_by_its_kubeconfig" {
  command = plan
  variables {
    settings = merge(var.settings, { clusters = {
      aks  = { karpenter = { limits = true } }
      mine = { karpenter = { claims = true }, kueue = true }
      told = {}
    } })
  }
  assert {
    condition     = { for name, c in jsondecode(output.functions["pod_pending"].environment.PILOTLIGHT_CLUSTERS) : name => c.pools } == { aks = "karpenter", mine = "karpenter", told = "advisor" }
    error_message = "Karpenter's own pools are those of the cluster; without karpenter it is advised on only"
  }
  assert {
    condition     = output.rights == { aks = " --karpenter", mine = " --karpenter-claims --kueue", told = "" }
    error_message = "the options of connect follow from it"
  }
}

run "a_bill_of_civo_needs_its_token_and_no_cluster" {
  command = plan
  variables {
    settings = merge(var.settings, { bills = "civo:LON1" })
  }
  assert {
    condition     = toset(keys(output.functions["billing_import"].secrets)) == toset(["CIVO_TOKEN_ML"]) && alltrue([for secret in values(output.functions["billing_import"].secrets) : endswith(secret, "-read")])
    error_message = "Civo tells its charges to a token, the one that only reads; no kubeconfig is needed"
  }
}

run "each_function_gets_the_secrets_it_uses" {
  command = plan
  assert {
    condition     = output.functions["alert_fanout"].secrets == tomap({ SLACK_URL = "pilotlight-slack" })
    error_message = "alert_fanout gets the channels' secrets and no cluster's"
  }
  assert {
    condition     = toset(keys(output.functions["pod_pending"].secrets)) == toset(["CIVO_TOKEN_ML", "KUBECONFIG_EDGE", "KUBECONFIG_ML"])
    error_message = "pod_pending gets the clusters' secrets and no channel's"
  }
  assert {
    condition     = alltrue([for secret in values(output.functions["billing_tick"].secrets) : endswith(secret, "-read")])
    error_message = "billing_tick counts, and holds nothing that could act"
  }
}

run "what_faces_outward_has_a_state_of_its_own" {
  command = plan
  variables {
    alerts_uri = "firestore:acme-pilotlight/pilotlight-dev-alerts/pilotlight"
    settings   = merge(var.settings, { telemetry = "https://prometheus.example", bills = "focus:gs://acme-bills/export/*.parquet" })
  }
  assert {
    condition     = output.functions["alert_fanout"].environment.PILOTLIGHT_STATE == var.alerts_uri && output.functions["capacity_reconcile"].environment.PILOTLIGHT_STATE == var.state_uri
    error_message = "alert_fanout's state is the alerts' own"
  }
  assert {
    condition     = output.functions["capacity_reconcile"].environment.PILOTLIGHT_ALERTS == var.alerts_uri
    error_message = "who wakes alert_fanout knows where alerts wait"
  }
  assert {
    condition     = [for name, function in output.functions : name if contains(keys(function.environment), "PILOTLIGHT_BILLS")] == ["billing_import"] && output.functions["billing_import"].environment.PILOTLIGHT_BILLS == var.settings.bills
    error_message = "the bill is read by billing_import alone"
  }
  assert {
    condition     = length(output.functions["billing_import"].secrets) == 0 && output.roles["billing_import"] == "bills" && length([for key in keys(output.buys_gke) : key if startswith(key, "billing_import")]) == 0
    error_message = "who reads the bill reaches no cluster and holds no secret of one"
  }
  assert {
    condition     = [for name, function in output.functions : name if contains(keys(function.environment), "PILOTLIGHT_TELEMETRY")] == ["billing_tick"] && output.functions["billing_tick"].environment.PILOTLIGHT_TELEMETRY == var.settings.telemetry
    error_message = "telemetry is read by billing_tick alone"
  }
}

run "kueue_has_a_function_where_a_cluster_says_so" {
  command = plan
  variables {
    settings = merge(var.settings, {
      clusters = {
        batch = { gke = { location = "europe-west1", cluster = "batch", project = "acme-clusters" }, kueue = true }
        other = { gke = { location = "europe-west1", cluster = "other", project = "acme-clusters" } }
      }
    })
  }
  assert {
    condition     = output.functions["kueue_admission"].subscriptions["workload-events"].attempts == 12 && output.roles["kueue_admission"] == "act" && output.topics["workload-events"].dead_letters
    error_message = "work that has its quota reaches kueue_admission, is tried for an hour, and has dead letters"
  }
  assert {
    condition     = output.sinks["batch-quota-reserved"].topic == "workload-events" && strcontains(output.sinks["batch-quota-reserved"].filter, "jsonPayload.reason=\"QuotaReserved\"") && !contains(keys(output.sinks), "other-quota-reserved")
    error_message = "Kueue's Events come from the clusters that say so"
  }
}

run "kueue_has_none_elsewhere" {
  command = plan
  assert {
    condition     = !contains(keys(output.functions), "kueue_admission") && !contains(keys(output.topics), "workload-events")
    error_message = "nothing is made that nothing would call"
  }
}

run "an_event_is_tried_for_as_long_as_it_is_worth" {
  command = plan
  # Waits of 10, 20, 40, 80, 160 s come to 310 >= 300: five waits, six attempts.
  assert {
    condition     = output.functions["capacity_reconcile"].subscriptions["ticks"].attempts == 6
    error_message = "a tick is tried for 5 minutes"
  }
  # 10 + 20 + 40 + 80 + 160 + 320 = 630 >= 600.
  assert {
    condition     = output.functions["spot_interruption"].subscriptions["interruptions"].attempts == 7
    error_message = "an interruption is tried for 10 minutes"
  }
  # 630, then 600 each: 630 + 5 x 600 = 3630 >= 3600.
  assert {
    condition     = output.functions["pod_pending"].subscriptions["pod-events"].attempts == 12
    error_message = "a pending pod is tried for an hour"
  }
  assert {
    condition = alltrue(flatten([
      for f in values(output.functions) : [for s in values(f.subscriptions) : s.ack_deadline_s > f.timeout_s && s.retention_s >= 600]
    ]))
    error_message = "Pub/Sub must wait longer than the function may take, and keep what is tried again"
  }
}

run "alerts_keep_their_order" {
  command = plan
  assert {
    condition     = [for f, made in output.functions : f if anytrue([for s in values(made.subscriptions) : s.ordered])] == ["alert_fanout"]
    error_message = "messages of one key reach alert_fanout in order, and nobody else waits for another"
  }
}

run "attempts_stay_within_what_pubsub_takes" {
  command = plan
  variables {
    settings = merge(var.settings, { functions = { bundles = "../../google/tests/bundles", backoff_s = { min = 1, max = 1 } } })
  }
  assert {
    condition     = alltrue(flatten([for f in values(output.functions) : [for s in values(f.subscriptions) : s.attempts == 100]]))
    error_message = "Pub/Sub takes at most 100 attempts"
  }
}

run "ticks_go_to_who_wants_them" {
  command = plan
  assert {
    condition     = output.functions["capacity_reconcile"].subscriptions["ticks"].filter == "attributes.tick = \"reconcile\""
    error_message = "capacity_reconcile takes the minute's ticks only"
  }
  assert {
    condition     = output.functions["billing_tick"].subscriptions["ticks"].filter == "attributes.tick = \"billing\""
    error_message = "billing_tick takes the hour's ticks only"
  }
  assert {
    condition     = output.schedules["batch-reconcile"].cron == "*/2 * * * *" && output.schedules["ml-reconcile"].cron == "* * * * *"
    error_message = "each cluster has a schedule of its own"
  }
}

run "only_gke_has_log_sinks" {
  command = plan
  assert {
    condition     = toset(keys(output.sinks)) == toset(["batch-failed-scheduling", "batch-scale-up-errors", "acme-clusters-preemptions"]) && alltrue([for sink in values(output.sinks) : sink.project == "acme-clusters"])
    error_message = "one sink of each kind for a GKE cluster, one for its project's preemptions, none for others"
  }
  assert {
    condition     = strcontains(output.sinks["batch-failed-scheduling"].filter, "jsonPayload.reason=\"FailedScheduling\"") && !strcontains(output.sinks["batch-failed-scheduling"].filter, "resource.type")
    error_message = "the filter asks for the reason, and for no resource type"
  }
  assert {
    condition     = output.sinks["acme-clusters-preemptions"].topic == "interruptions"
    error_message = "preemptions are interruptions"
  }
}

run "names_fit" {
  command = plan
  variables { settings = merge(var.settings, { name = "pilotlight", environment = "prod" }) }
  assert {
    condition     = alltrue([for f in values(output.functions) : length(f.account) <= 30 && length(f.invoker) <= 30])
    error_message = "an account's name is at most 30 long"
  }
}
