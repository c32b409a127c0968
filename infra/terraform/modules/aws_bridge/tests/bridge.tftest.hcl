mock_provider "google" {
  mock_resource "google_iam_workload_identity_pool" {
    defaults = { name = "projects/1/locations/global/workloadIdentityPools/pilotlight-dev-aws" }
  }
}
mock_provider "aws" {
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:eu-west-1:123456789012:dead", url = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:bridge" }
  }
  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:eu-west-1:123456789012:rule/one" }
  }
  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:bridge" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/bridge", id = "bridge" }
  }
}

variables {
  settings = {
    project   = "acme-pilotlight"
    aws       = { account_id = "123456789012", region = "eu-west-1" }
    functions = { bundles = "../../google_aws/tests/bundles" }
  }
  name = "pilotlight-dev"
  topics = {
    interruptions     = { id = "projects/acme-pilotlight/topics/interruptions", name = "interruptions" }
    capacity-failures = { id = "projects/acme-pilotlight/topics/capacity-failures", name = "capacity-failures" }
  }
}

run "no_key_is_stored" {
  command = apply
  assert {
    condition     = google_iam_workload_identity_pool_provider.this.aws[0].account_id == "123456789012" && google_iam_workload_identity_pool_provider.this.attribute_condition == "attribute.aws_role == \"pilotlight-dev-bridge\""
    error_message = "Google takes this account's bridge role, and no other"
  }
  assert {
    condition     = toset(keys(google_pubsub_topic_iam_member.bridge)) == toset(["interruptions", "capacity-failures"]) && alltrue([for m in google_pubsub_topic_iam_member.bridge : m.role == "roles/pubsub.publisher" && endswith(m.member, "/attribute.aws_role/pilotlight-dev-bridge")])
    error_message = "that role publishes to two topics"
  }
  assert {
    condition     = toset(keys(aws_lambda_function.bridge.environment[0].variables)) == toset(["BRIDGE_AUDIENCE", "BRIDGE_TOPICS"])
    error_message = "its environment holds no credential"
  }
  assert {
    condition = toset(keys(jsondecode(aws_lambda_function.bridge.environment[0].variables.BRIDGE_TOPICS))) == toset(flatten([
      for rule in aws_cloudwatch_event_rule.this : jsondecode(rule.event_pattern).detail-type
    ]))
    error_message = "every kind of event that a rule sends has a topic"
  }
}

run "the_role_logs_and_leaves_dead_letters" {
  command = apply
  assert {
    condition     = flatten([for s in jsondecode(aws_iam_role_policy.bridge.policy).Statement : s.Action]) == ["logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage"]
    error_message = "no right but these"
  }
  assert {
    condition     = alltrue([for s in jsondecode(aws_iam_role_policy.bridge.policy).Statement : s.Resource != "*"])
    error_message = "each on its own resource"
  }
  assert {
    condition     = jsondecode(aws_iam_role.bridge.assume_role_policy).Statement[0].Principal == { Service = "lambda.amazonaws.com" }
    error_message = "Lambda alone takes the role"
  }
}

run "every_kind_of_event_has_a_rule_a_target_and_a_dead_letter" {
  command = apply
  assert {
    condition     = toset(keys(aws_cloudwatch_event_rule.this)) == toset(["spot-interruption", "rebalance", "capacity-reservation", "health", "launch-unsuccessful"])
    error_message = "five kinds"
  }
  assert {
    condition     = jsondecode(aws_cloudwatch_event_rule.this["health"].event_pattern).detail == { service = ["EC2"], eventTypeCategory = ["scheduledChange"] }
    error_message = "of health events, scheduled changes of EC2"
  }
  assert {
    condition     = alltrue([for t in aws_cloudwatch_event_target.this : t.dead_letter_config[0].arn == aws_sqs_queue.dead.arn && t.retry_policy[0].maximum_retry_attempts == 20])
    error_message = "tried again, then kept in the queue"
  }
  assert {
    condition     = jsondecode(aws_lambda_function.bridge.environment[0].variables.BRIDGE_TOPICS)["EC2 Instance Launch Unsuccessful"] == "projects/acme-pilotlight/topics/capacity-failures"
    error_message = "a failed launch is news for capacity_reconcile"
  }
  assert {
    condition     = alltrue([for p in aws_lambda_permission.this : p.principal == "events.amazonaws.com" && p.source_arn != null])
    error_message = "EventBridge's rules alone may call it"
  }
}
