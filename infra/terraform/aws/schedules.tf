# Two ticks a minute for each cluster: one to look at its nodes, one to count money; and one for its bill, if there is one.

locals {
  ticks = merge([
    for name, c in local.settings.clusters : merge(
      {
        "${name}-reconcile" = { cluster = name, tick = "reconcile", when = c.reconcile }
        "${name}-billing"   = { cluster = name, tick = "billing", when = c.billing }
      },
      # A read that was cut off goes on at the next of these.
      { for tick in local.wanted.billing_import ? ["bills"] : [] : "${name}-${tick}" => { cluster = name, tick = tick, when = "rate(10 minutes)" } },
    )
  ]...)
}

resource "aws_scheduler_schedule" "tick" {
  #checkov:skip=CKV_AWS_297:its input is the name of a cluster and of a tick: nothing to encrypt with a key of one's own
  for_each = local.ticks

  name                = "${local.prefix}-${each.key}"
  schedule_expression = each.value.when

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_sqs_queue.this["ticks-${each.value.tick}"].arn
    role_arn = aws_iam_role.schedules.arn
    input    = jsonencode({ tick = each.value.tick, cluster = each.value.cluster })

    # A tick that is late is worth nothing: the next one comes.
    retry_policy {
      maximum_event_age_in_seconds = 60
      maximum_retry_attempts       = 1
    }
  }
}

resource "aws_iam_role" "schedules" {
  name = "${local.prefix}-schedules"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
}

resource "aws_iam_role_policy" "schedules" {
  name = "ticks"
  role = aws_iam_role.schedules.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([{
      Sid      = "Send", Effect = "Allow", Action = ["sqs:SendMessage"]
      Resource = [for tick in sort(distinct([for one in values(local.ticks) : one.tick])) : aws_sqs_queue.this["ticks-${tick}"].arn]
    }], local.uses_key)
  })
}
