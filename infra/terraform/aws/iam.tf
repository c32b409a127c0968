# A role for each function, with what it calls and nothing more: tests/infra/terraform/test_terraform_aws.py compares them with the code.

locals {
  tables = { for name, table in aws_dynamodb_table.this : name => table.arn }
  writes = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"]

  # alert_fanout, which faces outward, has no right to what decides about money. capacity_reconcile looks what is due.
  table_rights = {
    for function, route in local.routes : function => concat(
      [{
        Sid      = "State", Effect = "Allow", Action = local.writes
        Resource = local.tables[function == "alert_fanout" ? "alerts" : "state"]
      }],
      [for name in ["alerts"] : {
        Sid = "ReadAlerts", Effect = "Allow", Action = ["dynamodb:GetItem", "dynamodb:Query"], Resource = local.tables[name]
      } if function == "capacity_reconcile"],
      # Whoever looks first at an empty table marks how it is laid out.
      [for name in ["alerts"] : {
        Sid       = "LayOutAlerts", Effect = "Allow", Action = ["dynamodb:PutItem"], Resource = local.tables[name]
        Condition = { "ForAllValues:StringEquals" = { "dynamodb:LeadingKeys" = ["//rooms"] } }
      } if function == "capacity_reconcile"],
    )
  }

  # docs/guides/eks.md says why each: reading knows no resources; what changes a group is held to the clusters' own.
  looks = [
    "autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeLifecycleHooks", "autoscaling:DescribeScalingActivities",
    "autoscaling:DescribeWarmPool", "ce:GetSavingsPlansUtilization",
    "ec2:DescribeCapacityReservations", "ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeReservedInstances",
    "ec2:DescribeSpotInstanceRequests", "ec2:DescribeSpotPriceHistory",
    "eks:DescribeCluster", "eks:DescribeNodegroup", "pricing:GetProducts", "savingsplans:DescribeSavingsPlanRates",
    "savingsplans:DescribeSavingsPlans", "servicequotas:ListServiceQuotas",
  ]
  grows = [
    "autoscaling:CompleteLifecycleAction", "autoscaling:LaunchInstances", "autoscaling:PutWarmPool",
    "autoscaling:SetDesiredCapacity", "autoscaling:SetInstanceProtection", "autoscaling:TerminateInstanceInAutoScalingGroup",
  ]
  cloud_rights = {
    none  = []
    bills = []
    read  = [for what in [local.looks] : { Sid = "Look", Effect = "Allow", Action = what, Resource = "*" } if length(local.eks) > 0]
    act = concat(
      [for what in [local.looks] : { Sid = "Look", Effect = "Allow", Action = what, Resource = "*" } if length(local.eks) > 0],
      [for what in [local.grows] : {
        Sid       = "GrowAndGiveBack", Effect = "Allow", Action = what, Resource = "*"
        Condition = { StringEquals = { "autoscaling:ResourceTag/eks:cluster-name" = sort(distinct(values(local.eks))) } }
      } if length(local.eks) > 0],
      # Groups that EKS did not make have none of its tags: those that have yours.
      [for name, tag in local.group_tags : {
        Sid       = "GrowAndGiveBack${replace(title(replace(name, "-", " ")), " ", "")}", Effect = "Allow", Action = local.grows, Resource = "*"
        Condition = { StringEquals = { "autoscaling:ResourceTag/${tag.key}" = tag.value } }
      }],
      # LaunchInstances launches by a fleet in the role's name; nobody asks for one outright.
      [for what in ["ec2:CreateFleet"] : {
        Sid       = "LaunchInstancesLaunchesByAFleet", Effect = "Allow", Action = [what], Resource = "*"
        Condition = { Bool = { "aws:ViaAWSService" = "true" }, StringEquals = { "aws:RequestedRegion" = local.region } }
      } if length(local.eks) > 0],
    )
  }

  # Amazon's managed Prometheus.
  workspace = try(regex("^https://aps-workspaces\\.(?P<region>[a-z0-9-]+)\\.amazonaws\\.com/workspaces/(?P<id>[A-Za-z0-9-]+)/?$", local.settings.telemetry), null)

  # A bill in a table of Athena: the query in its workgroup, the table in its catalogue, the table's files and the results.
  # Athena reads the catalogue and both places in the function's name.
  athena = try(regex("^athena:(?P<region>[a-z0-9-]+)/(?P<group>[^/]+)/(?P<database>\\w+)\\.(?P<table>\\w+)$", local.settings.bills), null)
  athena_at = {
    for what, at in local.settings.athena == null ? {} : local.settings.athena : what => regex("^s3://(?P<bucket>[^/]+)/(?P<prefix>.*)$", at)
  }
  athena_rights = local.athena == null ? [] : [
    {
      Sid      = "QueryBills", Effect = "Allow", Action = ["athena:GetQueryExecution", "athena:GetQueryResults", "athena:StartQueryExecution"]
      Resource = ["arn:${local.partition}:athena:${local.athena.region}:${local.account}:workgroup/${local.athena.group}"]
    },
    {
      Sid = "ReadBillsTable", Effect = "Allow", Action = ["glue:GetDatabase", "glue:GetPartitions", "glue:GetTable"]
      Resource = [for what in ["catalog", "database/${local.athena.database}", "table/${local.athena.database}/${local.athena.table}"] :
      "arn:${local.partition}:glue:${local.athena.region}:${local.account}:${what}"]
    },
    {
      Sid      = "ReadBillsFiles", Effect = "Allow", Action = ["s3:GetObject"]
      Resource = [for at in values(local.athena_at) : "arn:${local.partition}:s3:::${at.bucket}/${at.prefix}*"]
    },
    {
      Sid      = "FindBillsFiles", Effect = "Allow", Action = ["s3:GetBucketLocation", "s3:ListBucket"]
      Resource = sort(distinct([for at in values(local.athena_at) : "arn:${local.partition}:s3:::${at.bucket}"]))
    },
    {
      Sid      = "LayResults", Effect = "Allow", Action = ["s3:PutObject"]
      Resource = ["arn:${local.partition}:s3:::${local.athena_at.results.bucket}/${local.athena_at.results.prefix}*"]
    },
  ]

  statements = {
    for function, route in local.routes : function => concat(
      [
        {
          Sid      = "Log", Effect = "Allow", Action = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "${aws_cloudwatch_log_group.this[function].arn}:*"
        },
        {
          Sid      = "TakeFromQueues", Effect = "Allow", Action = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
          Resource = [for name, queue in local.queues : aws_sqs_queue.this[name].arn if queue.function == function]
        },
        {
          Sid      = "Publish", Effect = "Allow", Action = ["sns:Publish"]
          Resource = sort([for topic in aws_sns_topic.this : topic.arn])
        },
        {
          Sid      = "ReadPolicy", Effect = "Allow", Action = ["s3:GetObject"]
          Resource = "${aws_s3_bucket.this.arn}/policy/*"
        },
      ],
      local.table_rights[function],
      local.uses_key,
      local.cloud_rights[route.role],
      [for secrets in [values(local.secrets[function])] : {
        Sid      = "ReadSecrets", Effect = "Allow", Action = ["secretsmanager:GetSecretValue"]
        Resource = sort([for secret in secrets : data.aws_secretsmanager_secret.needed[secret].arn])
      } if length(secrets) > 0],
      [for bucket in compact([local.bills_bucket]) : {
        Sid      = "ReadBills", Effect = "Allow", Action = ["s3:GetObject", "s3:ListBucket"]
        Resource = ["arn:${local.partition}:s3:::${bucket}", "arn:${local.partition}:s3:::${bucket}/*"]
      } if function == "billing_import"],
      [for right in local.athena_rights : right if function == "billing_import"],
      [for at in local.workspace == null ? [] : [local.workspace] : {
        Sid      = "ReadGpuSeries", Effect = "Allow", Action = ["aps:QueryMetrics"]
        Resource = "arn:${local.partition}:aps:${at.region}:${local.account}:workspace/${at.id}"
      } if function == "billing_tick"],
      # The policy's own queues, whose lengths a look reads.
      [for queues in [local.read_queues] : {
        Sid = "ReadLengths", Effect = "Allow", Action = ["sqs:GetQueueAttributes"], Resource = queues
      } if length(queues) > 0 && route.role == "act"],
      # An address in a VPC is made and taken away by Lambda in the function's name; EC2 knows no resources there.
      [for network in local.settings.network == null ? [] : [local.settings.network] : {
        Sid    = "StandInTheNetwork", Effect = "Allow", Resource = "*"
        Action = ["ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces"]
      }],
    )
  }
}

resource "aws_iam_role" "function" {
  for_each = local.routes

  name        = "${local.prefix}-${replace(each.key, "_", "-")}"
  description = "Pilotlight: ${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "function" {
  #checkov:skip=CKV_AWS_290:EC2's and Auto Scaling's calls know no resources; what changes a group is held to its cluster's tag
  #checkov:skip=CKV_AWS_355:the same
  for_each = local.routes

  name   = "what-it-calls"
  role   = aws_iam_role.function[each.key].id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.statements[each.key] })
}
