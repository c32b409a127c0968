# What is refused on AWS, before anything is asked of a cloud: every reason at once, in these words.

variables {
  given = {}
  aws = {
    policy_file = "../../examples/eks/policy.yaml"
    clusters    = { ml = { eks = { cluster = "prod" } } }
    alerts      = { email = "ops@example.com" }
    functions   = { bundles = "../../aws/tests/bundles" }
  }
}

run "few_values_are_enough" {
  command = plan
  variables { given = var.aws }
  assert {
    condition     = output.settings.name == "pilotlight" && output.settings.environment == "dev" && output.settings.protected && output.settings.network == null
    error_message = "every other has a default"
  }
  assert {
    condition     = output.settings.clusters["ml"].mode == "advise" && output.settings.clusters["ml"].reconcile == "rate(1 minute)"
    error_message = "a cluster begins by being advised on, and is looked at every minute"
  }
}

run "refuses_all_that_is_wrong" {
  command = plan
  variables {
    aws = {
      name        = "Pilot_Light"
      environment = "production"
      policy_file = "none.yaml"
      clusters    = { "ML/1" = { mode = "go", reconcile = "* * * * *" } }
      alerts      = { email = "ops", secrets = { AWS_REGION = "x" } }
      functions   = { bundles = "./tests", timeout_s = 5, max_instances = 1, billing_import = { memory_mb = 128, timeout_s = 900 } }
      network     = { subnets = ["subnet-1"], security_groups = [] }
      telemetry   = "prometheus:9090"
      bills       = "focus:gs://bucket/x.parquet"
      athena      = { data = "acme-bills", results = "s3://acme-results/*/" }
      budget      = { usd_per_month = 0, tag = "pilotlight" }
      audit       = { bucket = "s3://acme" }
      encryption  = { key = "arn:aws:kms:eu-west-1:123456789012:alias/mine" }
    }
  }
  expect_failures = [output.settings]
  assert {
    condition = local.refused == [
      "name has 2 to 10 lower-case letters and digits and begins with a letter.",
      "A cluster's name has lower-case letters, digits and hyphens, begins with a letter, does not end with a hyphen, and is at most 20 long.",
      "A cluster's mode is one of observe, advise, scale-up and act. Begin with advise: it decides and tells, and changes nothing.",
      "telemetry is the address of a Prometheus, as https://HOST/...; leave it out where functions reach none.",
      "environment has 2 to 4 lower-case letters and digits, as dev, prod or test.",
      "policy_file names no file. The path is seen from where terraform runs; begin with a copy of examples/eks/policy.yaml.",
      "A schedule is written as the Scheduler does: rate(1 minute), rate(5 minutes), cron(0 * * * ? *).",
      "alerts.email is an address, as ops@example.com: somebody must hear when Pilotlight itself fails.",
      "alerts.secrets maps the names of environment variables (capital letters, not beginning with PILOTLIGHT_ or AWS_) to names of secrets, as { SLACK_URL = \"pilotlight-slack\" }.",
      "functions.timeout_s is between 20 and 600 seconds.",
      "functions.billing_import.timeout_s is between 60 and 540 seconds: a read that was cut off is taken up after ten minutes.",
      "functions.billing_import: memory_mb is at least 512, disk_mb between 512 and 10240.",
      "functions.max_instances is at least 2: Lambda takes no less of a queue.",
      "Bundles or layers are missing in functions.bundles: run `make package CLOUD=aws` first.",
      "network names at least one subnet and one security group; leave it out where the API server has a public address.",
      "bills is focus:s3://BUCKET/PREFIX/*.parquet or athena:REGION/WORKGROUP/DATABASE.TABLE; leave it out where there is no bill to read.",
      "athena goes with bills = \"athena:...\": it says where the table's files and the workgroup's results lie.",
      "athena.data and athena.results are written s3://BUCKET/PREFIX/, with the slash at the end.",
      "budget.usd_per_month is more than 0; leave budget out for none.",
      "budget.tag is written as AWS Budgets does, as user:app$pilotlight: the key and the value of a tag in labels.",
      "audit.bucket is a bucket's name alone, as our-audit.",
      "encryption.key is the key's ARN, as `aws kms describe-key` prints it; an alias can be moved to another key.",
    ]
    error_message = join("\n", local.refused)
  }
}

run "refuses_no_cluster" {
  command = plan
  variables { aws = merge(var.aws, { clusters = {} }) }
  expect_failures = [output.settings]
  assert {
    condition     = local.refused == ["clusters is empty: name at least one cluster."]
    error_message = join("\n", local.refused)
  }
}

run "refuses_what_is_of_another_cloud" {
  command = plan
  variables { given = merge(var.aws, { project = "acme-pilotlight", functions = { bundles = "../../aws/tests/bundles", memory = "512Mi" } }) }
  expect_failures = [output.settings]
  assert {
    condition     = [for said in local.refused : split(" ", said)[0]] == ["functions.memory", "project"]
    error_message = join("\n", local.refused)
  }
}

run "takes_a_table_of_athena" {
  command = plan
  variables {
    aws = merge(var.aws, {
      bills  = "athena:eu-west-1/primary/billing.focus"
      athena = { data = "s3://acme-bills/focus/", results = "s3://acme-results/" }
    })
    given = var.aws
  }
  assert {
    condition     = length(local.refused) == 0
    error_message = join("\n", local.refused)
  }
}
