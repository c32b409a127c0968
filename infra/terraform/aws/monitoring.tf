# Who watches the watchman: dead letters, events that wait, functions that fail, and a heartbeat that stops or never began.

locals {
  runbook = "docs/guides/runbook.md in Pilotlight's repository says what to do."
  letters = merge(
    { for name, queue in aws_sqs_queue.dead : name => queue.name },
    { dead-letter = aws_sqs_queue.letters.name },
  )
}

resource "aws_sns_topic" "ops" {
  #checkov:skip=CKV_AWS_26:a key of one's own is an input; alarms may not publish to a topic under AWS's own
  #checkov:skip=CKV_AWS_385:its policy is the default one, which lets the account alone in
  name              = "${local.prefix}-ops"
  kms_master_key_id = local.key
}

resource "aws_sns_topic_subscription" "ops" {
  topic_arn = aws_sns_topic.ops.arn
  protocol  = "email"
  endpoint  = local.settings.alerts.email
}

resource "aws_cloudwatch_metric_alarm" "dead_letters" {
  for_each = local.letters

  alarm_name          = "${local.prefix}: dead letters of ${each.key}"
  alarm_description   = "Events that nobody could take wait in the queue ${each.value}. ${local.runbook}"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = each.value }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.ops.arn]
}

# What goes back to its queue is no error of the Lambda: that it waits is what shows.
resource "aws_cloudwatch_metric_alarm" "waiting" {
  for_each = local.queues

  alarm_name          = "${local.prefix}: ${each.key} wait"
  alarm_description   = "Events are tried again and again, or nobody takes them; after ${each.value.tries_for_s} s they are dead letters. ${local.runbook}"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateAgeOfOldestMessage"
  dimensions          = { QueueName = aws_sqs_queue.this[each.key].name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 3
  comparison_operator = "GreaterThanThreshold"
  threshold           = min(900, each.value.tries_for_s / 2)
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.ops.arn]
}

resource "aws_cloudwatch_metric_alarm" "failing" {
  for_each = local.routes

  alarm_name          = "${local.prefix}: ${each.key} fails"
  alarm_description   = "The function cannot start, is cut off, or raises: more than three times in five minutes, twice in a row. ${local.runbook}"
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.this[each.key].function_name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.ops.arn]
}

# A tick that was answered is deleted from its queue. Where none ever was there is no figure: that is silence too.
resource "aws_cloudwatch_metric_alarm" "silent" {
  alarm_name          = "${local.prefix}: no heartbeat"
  alarm_description   = "No tick was answered for ten minutes: nothing scales up or down now, and nodes that are lit stay lit. ${local.runbook}"
  namespace           = "AWS/SQS"
  metric_name         = "NumberOfMessagesDeleted"
  dimensions          = { QueueName = aws_sqs_queue.this["ticks-reconcile"].name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  treat_missing_data  = "breaching"
  alarm_actions       = [aws_sns_topic.ops.arn]
}

# What Pilotlight itself costs: Lambda, queues, tables and logs, not the nodes.
resource "aws_budgets_budget" "own" {
  count = local.settings.budget == null ? 0 : 1

  name         = "${local.prefix} itself"
  budget_type  = "COST"
  limit_amount = tostring(local.settings.budget.usd_per_month)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"

  cost_filter {
    name   = "TagKeyValue"
    values = [local.settings.budget.tag]
  }

  dynamic "notification" {
    for_each = [50, 80, 100]
    content {
      comparison_operator        = "GREATER_THAN"
      threshold                  = notification.value
      threshold_type             = "PERCENTAGE"
      notification_type          = "ACTUAL"
      subscriber_email_addresses = [local.settings.alerts.email]
    }
  }
}
