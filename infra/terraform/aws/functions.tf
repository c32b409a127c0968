# Lambdas of one package, each by its own handler, with its own role and queues. What they import lies in layers.

resource "aws_lambda_layer_version" "this" {
  for_each = toset(distinct([for route in values(local.routes) : route.layer]))

  layer_name               = "${local.prefix}-${each.key}"
  filename                 = "${local.settings.functions.bundles}/layer-${each.key}.zip"
  source_code_hash         = filebase64sha256("${local.settings.functions.bundles}/layer-${each.key}.zip")
  compatible_runtimes      = ["python3.11"]
  compatible_architectures = ["x86_64"]
}

resource "aws_cloudwatch_log_group" "this" {
  #checkov:skip=CKV_AWS_158:a key of one's own is an input; the lines hold names, reasons and dollars, no secrets
  #checkov:skip=CKV_AWS_338:decisions are in the state and in messages; lines are of use for weeks, not for a year
  for_each = local.routes

  name              = "/aws/lambda/${local.prefix}-${replace(each.key, "_", "-")}"
  retention_in_days = 30
  kms_key_id        = local.key
}

resource "aws_lambda_function" "this" {
  #checkov:skip=CKV_AWS_50:each answer says what was decided and why; tracing adds no more than the time of a call
  #checkov:skip=CKV_AWS_115:its queues let so many at it as functions.max_instances says
  #checkov:skip=CKV_AWS_116:its queues have dead letters; nothing calls it otherwise
  #checkov:skip=CKV_AWS_117:in a VPC where `network` names one; outside it reaches public API servers only
  #checkov:skip=CKV_AWS_173:a key of one's own is an input; its environment names secrets and holds none
  #checkov:skip=CKV_AWS_272:the bundle is named by its hash, and reproducible from source
  for_each = local.routes

  function_name    = "${local.prefix}-${replace(each.key, "_", "-")}"
  description      = "Pilotlight: ${each.key}"
  role             = aws_iam_role.function[each.key].arn
  runtime          = "python3.11"
  architectures    = ["x86_64"]
  handler          = "pilotlight.on_lambda.${each.key}"
  filename         = "${local.settings.functions.bundles}/${each.key}.zip"
  source_code_hash = filebase64sha256("${local.settings.functions.bundles}/${each.key}.zip")
  layers           = [aws_lambda_layer_version.this[each.value.layer].arn]
  memory_size      = each.key == "billing_import" ? local.settings.functions.billing_import.memory_mb : local.settings.functions.memory_mb
  timeout          = local.timeout_s[each.key]
  kms_key_arn      = local.key

  environment {
    variables = local.environments[each.key]
  }

  # Copies of an export's file lie there, one at a time.
  ephemeral_storage {
    size = each.key == "billing_import" ? local.settings.functions.billing_import.disk_mb : 512
  }

  dynamic "vpc_config" {
    for_each = local.settings.network == null ? [] : [local.settings.network]
    content {
      subnet_ids         = vpc_config.value.subnets
      security_group_ids = vpc_config.value.security_groups
    }
  }

  depends_on = [aws_iam_role_policy.function, aws_cloudwatch_log_group.this, aws_s3_object.policy]

  lifecycle {
    precondition {
      condition     = sum([for key, value in local.environments[each.key] : length(key) + length(value)]) <= 4096
      error_message = "The environment of ${each.key} is longer than the 4 KB that Lambda takes: name fewer clusters in one deployment, or give them shorter names."
    }
  }
}

resource "aws_lambda_event_source_mapping" "this" {
  for_each = local.queues

  event_source_arn = aws_sqs_queue.this[each.key].arn
  function_name    = aws_lambda_function.this[each.value.function].arn
  batch_size       = 10
  # What is for later goes back by itself; what lies beside it in the batch is done.
  function_response_types = ["ReportBatchItemFailures"]

  scaling_config {
    maximum_concurrency = local.settings.functions.max_instances
  }
}

# EKS lets each function's role in under its own name; what that name may do is for the cluster's RBAC to say.
resource "aws_eks_access_entry" "this" {
  for_each = merge([
    for name, cluster in local.eks : {
      for function, route in local.routes : "${name}-${function}" => { cluster = cluster, function = function } if contains(["act", "read"], route.role)
    }
  ]...)

  cluster_name  = each.value.cluster
  principal_arn = aws_iam_role.function[each.value.function].arn
  user_name     = "${local.prefix}-${replace(each.value.function, "_", "-")}"
}
