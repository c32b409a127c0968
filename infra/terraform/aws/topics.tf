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

resource "aws_sns_topic_subscription" "this" {
  for_each = { alerts = aws_sqs_queue.this["alerts"].arn, dead-letter = aws_sqs_queue.letters.arn }

  topic_arn            = aws_sns_topic.this[each.key].arn
  protocol             = "sqs"
  endpoint             = each.value
  raw_message_delivery = true

  depends_on = [aws_sqs_queue_policy.senders]
}
