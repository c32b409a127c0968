# EventBridge -> a small Lambda -> Pub/Sub. The Lambda shows AWS's own identity to Google and gets a token for an hour:
# no key is stored on either side.

locals {
  role   = "${var.name}-bridge"
  bundle = "${var.settings.functions.bundles}/aws_bridge.zip"

  rules = {
    spot-interruption = { topic = "interruptions", pattern = {
      source = ["aws.ec2"], detail-type = ["EC2 Spot Instance Interruption Warning"]
    } }
    rebalance = { topic = "interruptions", pattern = {
      source = ["aws.ec2"], detail-type = ["EC2 Instance Rebalance Recommendation"]
    } }
    capacity-reservation = { topic = "interruptions", pattern = {
      source = ["aws.ec2"], detail-type = [
        "EC2 Capacity Reservation Instance Interruption Warning",
        "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
        "Capacity Block Expiration Warning", "Capacity Block Reservation Expiration Warning",
      ]
    } }
    health = { topic = "interruptions", pattern = {
      source = ["aws.health"], detail-type = ["AWS Health Event"]
      detail = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] }
    } }
    launch-unsuccessful = { topic = "capacity-failures", pattern = {
      source = ["aws.autoscaling"], detail-type = ["EC2 Instance Launch Unsuccessful"]
    } }
  }

  audience = "//iam.googleapis.com/${google_iam_workload_identity_pool.this.name}/providers/${local.provider_id}"
  # Written out, for the Lambda's environment must not depend on the provider that depends on the Lambda's role.
  provider_id = "aws"
}

resource "google_iam_workload_identity_pool" "this" {
  project                   = var.settings.project
  workload_identity_pool_id = "${var.name}-aws"
  display_name              = "Pilotlight's bridge from AWS"
}

resource "google_iam_workload_identity_pool_provider" "this" {
  #checkov:skip=CKV_GCP_125:this provider trusts an AWS account, not GitHub Actions; its condition names the one role
  project                            = var.settings.project
  workload_identity_pool_id          = google_iam_workload_identity_pool.this.workload_identity_pool_id
  workload_identity_pool_provider_id = local.provider_id
  attribute_condition                = "attribute.aws_role == \"${local.role}\""
  attribute_mapping = {
    "google.subject"     = "assertion.arn"
    "attribute.aws_role" = "assertion.arn.extract('assumed-role/{role}/')"
  }

  aws {
    account_id = var.settings.aws.account_id
  }
}

resource "google_pubsub_topic_iam_member" "bridge" {
  for_each = toset([for rule in values(local.rules) : rule.topic])

  project = var.settings.project
  topic   = var.topics[each.key].name
  role    = "roles/pubsub.publisher"
  member  = "principalSet://iam.googleapis.com/${google_iam_workload_identity_pool.this.name}/attribute.aws_role/${local.role}"
}

resource "aws_iam_role" "bridge" {
  name = local.role
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

# It proves who it is by GetCallerIdentity, which needs no right; what is left is to log and to leave dead letters.
resource "aws_iam_role_policy" "bridge" {
  name = "logs-and-dead-letters"
  role = aws_iam_role.bridge.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.bridge.arn}:*"
      },
      {
        Effect   = "Allow"
        Action   = "sqs:SendMessage"
        Resource = aws_sqs_queue.dead.arn
      },
    ]
  })
}

resource "aws_cloudwatch_log_group" "bridge" {
  #checkov:skip=CKV_AWS_158:encrypted by CloudWatch itself; the lines hold instance ids, no secrets
  #checkov:skip=CKV_AWS_338:a bridge's lines are of use for days, not for a year
  name              = "/aws/lambda/${local.role}"
  retention_in_days = 14
}

resource "aws_lambda_function" "bridge" {
  #checkov:skip=CKV_AWS_50:tracing says nothing about one HTTPS call
  #checkov:skip=CKV_AWS_115:a limit would drop warnings just when many come at once
  #checkov:skip=CKV_AWS_117:it reaches Google's public API only; a VPC would need a NAT to do the same
  #checkov:skip=CKV_AWS_173:its environment names topics and an audience: no secrets to encrypt with a key of one's own
  #checkov:skip=CKV_AWS_272:the bundle is named by its hash, and reproducible from source
  function_name    = local.role
  role             = aws_iam_role.bridge.arn
  runtime          = "python3.11"
  handler          = "main.aws_bridge"
  filename         = local.bundle
  source_code_hash = filebase64sha256(local.bundle)
  timeout          = 30
  memory_size      = 256

  environment {
    variables = {
      BRIDGE_AUDIENCE = local.audience
      BRIDGE_TOPICS   = jsonencode(merge([for rule in values(local.rules) : { for kind in rule.pattern.detail-type : kind => var.topics[rule.topic].id }]...))
    }
  }

  dead_letter_config {
    target_arn = aws_sqs_queue.dead.arn
  }

  depends_on = [aws_iam_role_policy.bridge, aws_cloudwatch_log_group.bridge]
}

# What neither EventBridge nor the Lambda could deliver.
resource "aws_sqs_queue" "dead" {
  name                      = "${local.role}-dead"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "dead" {
  queue_url = aws_sqs_queue.dead.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.dead.arn
      Principal = { Service = "events.amazonaws.com" }
      Condition = { ArnEquals = { "aws:SourceArn" = [for rule in aws_cloudwatch_event_rule.this : rule.arn] } }
    }]
  })
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = local.rules

  name          = "${var.name}-${each.key}"
  description   = "Pilotlight: ${each.value.pattern.detail-type[0]}"
  event_pattern = jsonencode(each.value.pattern)
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = local.rules

  rule = aws_cloudwatch_event_rule.this[each.key].name
  arn  = aws_lambda_function.bridge.arn

  # A spot warning is of use for two minutes, others for longer; an hour covers an outage.
  retry_policy {
    maximum_event_age_in_seconds = 3600
    maximum_retry_attempts       = 20
  }

  dead_letter_config {
    arn = aws_sqs_queue.dead.arn
  }
}

resource "aws_lambda_permission" "this" {
  for_each = local.rules

  statement_id  = each.key
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.bridge.function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.this[each.key].arn
}
