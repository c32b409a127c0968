mock_provider "aws" {
  mock_resource "aws_dynamodb_table" {
    defaults = { arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/pilotlight-dev" }
  }
}

variables {
  name = "pilotlight-dev"
}

run "a_table_expires_recovers_and_is_encrypted" {
  command = apply
  assert {
    condition     = aws_dynamodb_table.this.hash_key == "room" && aws_dynamodb_table.this.range_key == "key" && aws_dynamodb_table.this.ttl[0].attribute_name == "expires"
    error_message = "keys and TTL are the adapter's"
  }
  assert {
    condition     = aws_dynamodb_table.this.point_in_time_recovery[0].enabled && aws_dynamodb_table.this.server_side_encryption[0].enabled && aws_dynamodb_table.this.deletion_protection_enabled
    error_message = "it can be wound back, is encrypted, and is not deleted by mistake"
  }
  assert {
    condition     = output.uri == "dynamodb:pilotlight-dev"
    error_message = "PILOTLIGHT_STATE names the table"
  }
}

run "its_policy_allows_four_calls_on_it_alone" {
  command = apply
  assert {
    condition = jsondecode(aws_iam_policy.writes.policy).Statement == [{
      Action   = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"]
      Effect   = "Allow"
      Resource = "arn:aws:dynamodb:eu-west-1:123456789012:table/pilotlight-dev"
    }]
    error_message = "four calls on one table"
  }
}
