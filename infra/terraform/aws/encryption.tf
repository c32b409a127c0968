# With a key of one's own: what uses it in the functions' names, and what its own policy has to let in.

locals {
  key = try(local.settings.encryption.key, null)

  # A queue is under a key of one's own or under SQS's, not both.
  queues_own = local.key == null ? true : null

  uses_key = [for key in compact([local.key]) : {
    Sid = "UseKey", Effect = "Allow", Action = ["kms:Decrypt", "kms:GenerateDataKey"], Resource = key
  }]

  # AWS's services that write what is encrypted in nobody's name: each for this deployment alone.
  key_policy = [
    {
      Sid       = "PilotlightMessages", Effect = "Allow", Action = ["kms:Decrypt", "kms:GenerateDataKey*"], Resource = "*"
      Principal = { Service = ["budgets.amazonaws.com", "cloudwatch.amazonaws.com", "costalerts.amazonaws.com", "events.amazonaws.com", "sns.amazonaws.com"] }
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    },
    {
      Sid       = "PilotlightLogs", Effect = "Allow", Resource = "*"
      Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
      Principal = { Service = "logs.${local.region}.amazonaws.com" }
      Condition = { ArnLike = { "kms:EncryptionContext:aws:logs:arn" = "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/aws/lambda/${local.prefix}-*" } }
    },
  ]
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  count = local.key == null ? 0 : 1

  bucket = aws_s3_bucket.this.id

  rule {
    bucket_key_enabled = true
    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = local.key
    }
  }
}
