# What AWS itself tells: warnings of spot, health events, launches that failed. EventBridge's rules write to queues.

locals {
  spot = ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"]
  reserved = [
    "EC2 Capacity Reservation Instance Interruption Warning",
    "EC2 Interruptible Capacity Reservation Instance Interruption Warning",
    "Capacity Block Expiration Warning",
    "Capacity Block Reservation Expiration Warning",
  ]

  # Objects that the bill may be of: from its address up to the first *, and manifests, which lie beside data/.
  bills_prefix = try(replace(regex("^focus:s3://[^/]+/([^*]*)", local.settings.bills)[0], "/(^|/)data/.*$/", "$1"), "")
  bills_bucket = try(regex("^focus:s3://([^/]+)/", local.settings.bills)[0], null)

  rules = merge(
    {
      spot = { queue = "interruptions", pattern = { source = ["aws.ec2"], detail-type = local.spot } }
      reserved = { queue = "interruptions", pattern = {
        source = ["aws.ec2"], detail-type = local.reserved
      } }
      ended = { queue = "interruptions", pattern = {
        source = ["aws.ec2"], detail-type = ["EC2 Instance State-change Notification"]
        detail = { state = ["stopping", "stopped", "shutting-down", "terminated"] }
      } }
      health = { queue = "interruptions", pattern = {
        source = ["aws.health"], detail-type = ["AWS Health Event"]
        detail = { service = ["EC2"], eventTypeCategory = ["scheduledChange"] }
      } }
      lifecycle = { queue = "interruptions", pattern = {
        source = ["aws.autoscaling"], detail-type = ["EC2 Instance-terminate Lifecycle Action"]
      } }
      # Where it is told by SNS too, it is told once.
      cost-anomaly = { queue = "billing", pattern = {
        source = ["aws.ce"], detail-type = ["Anomaly Detected"]
      } }
      launch-unsuccessful = { queue = "capacity-failures", pattern = {
        source = ["aws.autoscaling"], detail-type = ["EC2 Instance Launch Unsuccessful"]
      } }
    },
    local.bills_bucket == null ? {} : {
      bill = { queue = "bills", pattern = {
        source = ["aws.s3"], detail-type = ["Object Created"]
        detail = { bucket = { name = [local.bills_bucket] }, object = { key = [{ prefix = local.bills_prefix }] } }
      } }
    },
  )
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = local.rules

  name          = "${local.prefix}-${each.key}"
  description   = "Pilotlight: ${each.value.pattern.detail-type[0]}"
  event_pattern = jsonencode(each.value.pattern)
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = local.rules

  rule = aws_cloudwatch_event_rule.this[each.key].name
  arn  = aws_sqs_queue.this[each.value.queue].arn

  # A queue that cannot be written to is EventBridge's own trouble: it tries for as long as the event is worth.
  retry_policy {
    maximum_event_age_in_seconds = local.queues[each.value.queue].tries_for_s
    maximum_retry_attempts       = 20
  }

  dead_letter_config {
    arn = aws_sqs_queue.dead[each.value.queue].arn
  }
}

# EventBridge's dead letters come from the rules too.
resource "aws_sqs_queue_policy" "dead" {
  for_each = toset(distinct([for rule in values(local.rules) : rule.queue]))

  queue_url = aws_sqs_queue.dead[each.key].url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.dead[each.key].arn
      Principal = { Service = "events.amazonaws.com" }
      Condition = { ArnEquals = { "aws:SourceArn" = [for name, rule in local.rules : aws_cloudwatch_event_rule.this[name].arn if rule.queue == each.key] } }
    }]
  })
}
