# What survives between events: one DynamoDB table, which deletes what has expired, and the policy of who uses it.

resource "aws_dynamodb_table" "this" {
  #checkov:skip=CKV_AWS_119:encrypted with AWS's own KMS key; the records hold names and dollars, no secrets
  name                        = var.name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "room"
  range_key                   = "key"
  deletion_protection_enabled = var.protected

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
    enabled = true
  }
}

# For whoever runs the functions at home: what the adapter calls, on this table and no other.
resource "aws_iam_policy" "writes" {
  name = "${var.name}-state"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"]
      Resource = aws_dynamodb_table.this.arn
    }]
  })
}
