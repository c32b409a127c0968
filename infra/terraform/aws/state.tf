# What survives between events, and, in a table whose rights are others, what is known of alerts on their way.

resource "aws_dynamodb_table" "this" {
  #checkov:skip=CKV_AWS_119:a key of one's own is an input; the records hold names and dollars, no secrets
  for_each = toset(["state", "alerts"])

  name                        = "${local.prefix}-${each.key}"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "room"
  range_key                   = "key"
  deletion_protection_enabled = local.settings.protected

  attribute {
    name = "room"
    type = "S"
  }

  attribute {
    name = "key"
    type = "S"
  }

  ttl {
    attribute_name = "expires"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = local.key
  }
}
