# What five values deploy: who takes what, who may do what, and what is told.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { region = "eu-west-1" }
  }
}

variables {
  settings = {
    policy_file = "../examples/eks/policy.yaml"
    clusters    = { ml = { eks = { cluster = "prod" } } }
    alerts      = { email = "ops@example.com" }
    functions   = { bundles = "./tests/bundles" }
  }
}

run "few_values_deploy_all_of_it" {
  command = apply
  assert {
    condition     = toset(keys(aws_lambda_function.this)) == toset(["pod_pending", "capacity_reconcile", "billing_tick", "spot_interruption", "alert_fanout"])
    error_message = "five functions: kueue_admission is where a cluster says kueue"
  }
  assert {
    condition     = length(output.secrets_to_make) == 0
    error_message = "an EKS cluster needs no secret"
  }
  assert {
    condition     = output.state == "dynamodb:pilotlight-dev-state" && output.alerts == "dynamodb:pilotlight-dev-alerts"
    error_message = "alerts on their way lie in a table of their own"
  }
  assert {
    condition     = output.outbox == "sns:arn:aws:sns:eu-west-1:123456789012:pilotlight-dev" && aws_sns_topic.this["alerts"].name == "pilotlight-dev-alerts.fifo"
    error_message = "the outbox's ARN, a hyphen, the topic and .fifo make the topic's ARN"
  }
  assert {
    condition     = startswith(output.policy, "s3://pilotlight-dev-123456789012-eu-west-1/policy/") && toset(keys(aws_s3_object.policy)) == toset(["policy.yaml", "prices.yaml"])
    error_message = "the policy and its price files are uploaded, and functions read them there"
  }
  assert {
    condition     = jsondecode(aws_lambda_function.this["pod_pending"].environment[0].variables.PILOTLIGHT_CLUSTERS) == { ml = { api = "eks:eu-west-1/prod", pools = "asg:eu-west-1/prod", mode = "advise" } }
    error_message = "a cluster is reached by the function's role, and is advised on"
  }
  assert {
    condition     = output.connect.ml == "pilotlight connect --context ml --act --policy ../examples/eks/policy.yaml --reader pilotlight-dev-billing-tick --actor pilotlight-dev-capacity-reconcile --actor pilotlight-dev-pod-pending --actor pilotlight-dev-spot-interruption"
    error_message = "the command that lets the functions in knows each by the name that EKS gives it"
  }
  assert {
    condition     = length(aws_lambda_function.this["pod_pending"].vpc_config) == 0
    error_message = "no network where none is named"
  }
}

run "work_that_has_its_quota_reaches_a_function_of_its_own" {
  command = apply
  variables {
    settings = merge(var.settings, {
      clusters = { ml = { eks = { cluster = "prod" }, kueue = true } }
    })
  }
  assert {
    condition     = output.pod_events.workloads == "pilotlight-dev-workload-events" && aws_lambda_function.this["kueue_admission"].handler == "pilotlight.on_lambda.kueue_admission"
    error_message = "the exporter has a queue for Workloads, and a Lambda takes from it"
  }
  assert {
    condition     = strcontains(output.connect.ml, "--kueue") && strcontains(output.connect.ml, "--actor pilotlight-dev-kueue-admission")
    error_message = "the cluster's RBAC knows it as one that acts"
  }
}

run "karpenter_gets_its_rights_and_buys_by_claims_where_that_is_asked_for" {
  command = apply
  variables {
    settings = merge(var.settings, { clusters = {
      ml    = { eks = { cluster = "prod" }, karpenter = { limits = true } }
      batch = { eks = { cluster = "batch" }, karpenter = { claims = true } }
    } })
  }
  assert {
    condition     = strcontains(output.connect.ml, "--act --karpenter --policy") && strcontains(output.connect.batch, "--act --karpenter-claims --policy")
    error_message = "the command that lets the functions in gives the role of each"
  }
  assert {
    condition     = { for name, c in jsondecode(aws_lambda_function.this["pod_pending"].environment[0].variables.PILOTLIGHT_CLUSTERS) : name => c.pools } == { ml = "asg:eu-west-1/prod", batch = "karpenter" }
    error_message = "limits go beside groups; claims stand for them"
  }
}

run "lengths_of_the_policys_own_queues_may_be_read" {
  command = apply
  variables { settings = merge(var.settings, { policy_file = "./tests/queue-policy.yaml" }) }
  assert {
    condition = [
      for one in jsondecode(aws_iam_role_policy.function["capacity_reconcile"].policy).Statement : one.Resource if one.Sid == "ReadLengths"
    ] == [["arn:aws:sqs:eu-west-1:123456789012:speech"]]
    error_message = "each queue that the policy names, and no other"
  }
  assert {
    condition     = !strcontains(aws_iam_role_policy.function["billing_tick"].policy, "ReadLengths")
    error_message = "what counts money reads no queue"
  }
}

run "groups_of_ones_own_are_changed_by_their_tag" {
  command = apply
  variables {
    settings = merge(var.settings, { clusters = { ml-eu = { eks = { cluster = "prod", group_tag = { key = "team", value = "gpu" } } } } })
  }
  assert {
    condition = [
      for one in jsondecode(aws_iam_role_policy.function["pod_pending"].policy).Statement : one.Condition.StringEquals if one.Sid == "GrowAndGiveBackMlEu"
    ] == [{ "autoscaling:ResourceTag/team" = "gpu" }]
    error_message = "Auto Scaling groups that EKS did not make are held by a tag that is given"
  }
}

run "no_environment_is_longer_than_lambda_takes" {
  command = plan
  variables {
    settings = merge(var.settings, { clusters = { for n in range(60) : "cluster-${n}" => { eks = { cluster = "a-cluster-of-some-length-${n}" } } } })
  }
  expect_failures = [aws_lambda_function.this]
}

run "a_partition_that_is_not_served_is_refused_by_its_name" {
  command = plan
  override_data {
    target = data.aws_partition.this
    values = { partition = "aws-cn" }
  }
  expect_failures = [data.aws_partition.this]
}

run "the_keys_policy_is_known_before_the_first_apply" {
  command = plan
  variables {
    settings = merge(var.settings, { encryption = { key = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab" } })
  }
  assert {
    condition     = flatten([for s in jsondecode(output.key_policy) : s.Principal.Service]) == ["budgets.amazonaws.com", "cloudwatch.amazonaws.com", "costalerts.amazonaws.com", "events.amazonaws.com", "sns.amazonaws.com", "logs.eu-west-1.amazonaws.com"]
    error_message = "the plan says whom the key has to let in"
  }
}

run "a_fleet_is_launched_by_auto_scaling_alone" {
  command = apply
  assert {
    condition = [
      for one in jsondecode(aws_iam_role_policy.function["pod_pending"].policy).Statement : one.Condition if one.Sid == "LaunchInstancesLaunchesByAFleet"
    ] == [{ Bool = { "aws:ViaAWSService" = "true" }, StringEquals = { "aws:RequestedRegion" = "eu-west-1" } }]
    error_message = "the role asks for no fleet outright"
  }
}

run "ticks_name_their_cluster" {
  command = apply
  assert {
    condition     = { for name, made in aws_scheduler_schedule.tick : name => jsondecode(made.target[0].input) } == { ml-reconcile = { tick = "reconcile", cluster = "ml" }, ml-billing = { tick = "billing", cluster = "ml" } }
    error_message = "two ticks for each cluster"
  }
}

run "secrets_are_named_and_not_held" {
  command = apply
  variables {
    settings = merge(var.settings, {
      clusters = { edge = {} }
      alerts   = { email = "ops@example.com", secrets = { SLACK_URL = "pilotlight-slack" } }
    })
  }
  assert {
    condition     = output.secrets_to_make == tolist(["pilotlight-dev-edge-kubeconfig", "pilotlight-dev-edge-kubeconfig-read", "pilotlight-slack"])
    error_message = "the secrets that must exist are named"
  }
  assert {
    condition     = alltrue([for name, route in local.routes : startswith(values({ for key, value in aws_lambda_function.this[name].environment[0].variables : key => value if !startswith(key, "PILOTLIGHT_") })[0], "secretsmanager:")])
    error_message = "a variable says where its secret lies"
  }
  assert {
    condition     = length(aws_eks_access_entry.this) == 0 && !strcontains(aws_iam_role_policy.function["pod_pending"].policy, "autoscaling")
    error_message = "where no cluster is EKS's, no group may be touched"
  }
}

run "own_cost_is_watched_where_that_is_asked_for" {
  command = apply
  variables { settings = merge(var.settings, { budget = { usd_per_month = 20 } }) }
  assert {
    condition     = aws_budgets_budget.own[0].limit_amount == "20" && length(aws_budgets_budget.own[0].notification) == 3
    error_message = "three steps of what Pilotlight itself may cost are told"
  }
}

run "a_bill_in_athena_is_queried_by_billing_import_alone" {
  command = apply
  variables {
    settings = merge(var.settings, {
      bills  = "athena:eu-west-1/finance/billing.focus"
      athena = { data = "s3://acme-bills/focus/", results = "s3://acme-results/athena/" }
    })
  }
  assert {
    condition     = aws_lambda_function.this["billing_import"].environment[0].variables.PILOTLIGHT_BILLS == "athena:eu-west-1/finance/billing.focus" && !contains(keys(aws_lambda_function.this["billing_tick"].environment[0].variables), "PILOTLIGHT_BILLS")
    error_message = "billing_import alone knows the table"
  }
  assert {
    condition = {
      for one in jsondecode(aws_iam_role_policy.function["billing_import"].policy).Statement : one.Sid => one.Resource if contains(["QueryBills", "ReadBillsTable", "ReadBillsFiles", "FindBillsFiles", "LayResults"], one.Sid)
      } == {
      QueryBills     = ["arn:aws:athena:eu-west-1:123456789012:workgroup/finance"]
      ReadBillsTable = ["arn:aws:glue:eu-west-1:123456789012:catalog", "arn:aws:glue:eu-west-1:123456789012:database/billing", "arn:aws:glue:eu-west-1:123456789012:table/billing/focus"]
      ReadBillsFiles = ["arn:aws:s3:::acme-bills/focus/*", "arn:aws:s3:::acme-results/athena/*"]
      FindBillsFiles = ["arn:aws:s3:::acme-bills", "arn:aws:s3:::acme-results"]
      LayResults     = ["arn:aws:s3:::acme-results/athena/*"]
    }
    error_message = "it may query that table in that workgroup, and write nothing but results"
  }
  assert {
    condition     = !strcontains(aws_iam_role_policy.function["billing_tick"].policy, "athena:") && !contains(keys(aws_cloudwatch_event_rule.this), "bill")
    error_message = "nobody else may, and no bucket tells of files"
  }
  assert {
    condition     = aws_lambda_function.this["billing_import"].memory_size == 1769 && aws_lambda_function.this["billing_import"].timeout == 540 && aws_lambda_function.this["billing_tick"].timeout == 75 && aws_sqs_queue.this["bills"].visibility_timeout_seconds == 570
    error_message = "it has memory and time of its own"
  }
  assert {
    condition     = aws_scheduler_schedule.tick["ml-bills"].schedule_expression == "rate(10 minutes)" && jsondecode(aws_scheduler_schedule.tick["ml-bills"].target[0].input).tick == "bills"
    error_message = "a read that was cut off goes on at the next of its ticks"
  }
}
