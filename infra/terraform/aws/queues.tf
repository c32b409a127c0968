# Everything that functions take comes through a queue: it waits there while they are busy, is tried again where later may
# work, and lies among the dead letters when it was tried for as long as it is worth.

resource "aws_sqs_queue" "dead" {
  for_each = local.queues

  name                      = "${local.prefix}-${each.key}-dead${each.value.ordered ? ".fifo" : ""}"
  fifo_queue                = each.value.ordered
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = local.queues_own
  kms_master_key_id         = local.key
}

resource "aws_sqs_queue" "this" {
  for_each = local.queues

  name                       = "${local.prefix}-${each.key}${each.value.ordered ? ".fifo" : ""}"
  fifo_queue                 = each.value.ordered
  visibility_timeout_seconds = local.visible_after_s[each.key]
  receive_wait_time_seconds  = 20
  # Dead letters keep the age they had: what goes there has to outlive it.
  message_retention_seconds = max(900, 2 * each.value.tries_for_s)
  sqs_managed_sse_enabled   = local.queues_own
  kms_master_key_id         = local.key

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead[each.key].arn
    maxReceiveCount     = max(5, ceil(each.value.tries_for_s / local.visible_after_s[each.key]))
  })
}

# The dead letters that Pilotlight itself writes, each with its reason, for people.
resource "aws_sqs_queue" "letters" {
  #checkov:skip=CKV_AWS_387:read by people with rights of their own; only the topic may write
  name                      = "${local.prefix}-dead-letter.fifo"
  fifo_queue                = true
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = local.queues_own
  kms_master_key_id         = local.key
}

locals {
  # Who may write to each queue, besides what a role says of itself: EventBridge's rules and the outbox's topics.
  senders = merge(
    {
      for queue in distinct([for rule in values(local.rules) : rule.queue]) : queue => {
        arn     = aws_sqs_queue.this[queue].arn, url = aws_sqs_queue.this[queue].url
        service = queue == "billing" ? ["events.amazonaws.com", "sns.amazonaws.com"] : ["events.amazonaws.com"]
        sources = concat(
          [for name, rule in local.rules : aws_cloudwatch_event_rule.this[name].arn if rule.queue == queue],
          [for topic in [aws_sns_topic.costs] : topic.arn if queue == "billing"],
        )
      }
    },
    {
      alerts = {
        arn     = aws_sqs_queue.this["alerts"].arn, url = aws_sqs_queue.this["alerts"].url, service = ["sns.amazonaws.com"]
        sources = [aws_sns_topic.this["alerts"].arn]
      }
      dead-letter = {
        arn     = aws_sqs_queue.letters.arn, url = aws_sqs_queue.letters.url, service = ["sns.amazonaws.com"]
        sources = [aws_sns_topic.this["dead-letter"].arn]
      }
    },
  )
}

resource "aws_sqs_queue_policy" "senders" {
  for_each = local.senders

  queue_url = each.value.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sqs:SendMessage"
      Resource  = each.value.arn
      Principal = { Service = each.value.service }
      Condition = { ArnEquals = { "aws:SourceArn" = each.value.sources } }
    }]
  })
}

# For whoever sends events of pods, and of Kueue's Workloads, from inside a cluster: into those queues, and nothing else.
resource "aws_iam_policy" "pod_events" {
  name        = "${local.prefix}-pod-events"
  description = "Send events of pods to Pilotlight."
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([{
      Sid      = "Send", Effect = "Allow", Action = ["sqs:GetQueueUrl", "sqs:SendMessage"]
      Resource = [for name in ["pod-events", "workload-events"] : aws_sqs_queue.this[name].arn if contains(keys(local.queues), name)]
    }], local.uses_key)
  })
}
