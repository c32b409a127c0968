# The outbox: what Pilotlight tells goes out on three topics, in order by pool. Whoever wants to hear of capacity subscribes
# a FIFO queue of theirs.

locals {
  topics     = toset(["alerts", "capacity", "dead-letter"])
  topics_arn = "arn:${local.partition}:sns:${local.region}:${local.account}:${local.prefix}"
}

resource "aws_sns_topic" "this" {
  #checkov:skip=CKV_AWS_385:its policy is the default one, which lets the account alone in
  for_each = local.topics

  name              = "${local.prefix}-${each.key}.fifo"
  fifo_topic        = true
  kms_master_key_id = coalesce(local.key, "alias/aws/sns")
}

# What AWS says of money by itself: name this topic in a budget's notification, and in a subscription of Cost Anomaly
# Detection. Both publish here, for this account alone, and billing_tick takes it.
resource "aws_sns_topic" "costs" {
  #checkov:skip=CKV_AWS_26:a key of one's own is an input; AWS Budgets may not publish to a topic under AWS's own
  name              = "${local.prefix}-costs"
  kms_master_key_id = local.key
}

resource "aws_sns_topic_policy" "costs" {
  arn = aws_sns_topic.costs.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "CostNotices", Effect = "Allow", Action = "sns:Publish", Resource = aws_sns_topic.costs.arn
      Principal = { Service = ["budgets.amazonaws.com", "costalerts.amazonaws.com"] }
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
}

resource "aws_sns_topic_subscription" "costs" {
  topic_arn = aws_sns_topic.costs.arn
  protocol  = "sqs"
  endpoint  = aws_sqs_queue.this["billing"].arn

  depends_on = [aws_sqs_queue_policy.senders]
}

resource "aws_sns_topic_subscription" "this" {
  for_each = { alerts = aws_sqs_queue.this["alerts"].arn, dead-letter = aws_sqs_queue.letters.arn }

  topic_arn            = aws_sns_topic.this[each.key].arn
  protocol             = "sqs"
  endpoint             = each.value
  raw_message_delivery = true

  depends_on = [aws_sqs_queue_policy.senders]
}
