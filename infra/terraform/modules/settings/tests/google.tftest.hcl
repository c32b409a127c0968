# What is refused on Google Cloud, before anything is asked of a cloud: every reason at once, in these words.

variables {
  given = {}
  google = {
    project     = "acme-pilotlight"
    region      = "europe-west1"
    policy_file = "../../examples/civo/policy.yaml"
    clusters    = { ml = { civo = { region = "LON1", cluster_id = "c-1" } } }
    alerts      = { email = "ops@example.com" }
    functions   = { bundles = "../../google/tests/bundles" }
  }
}

run "few_values_are_enough" {
  command = plan
  variables { given = var.google }
  assert {
    condition     = output.settings.name == "pilotlight" && output.settings.environment == "dev" && output.settings.protected && output.settings.network.path == "static-addresses"
    error_message = "every other has a default"
  }
  assert {
    condition     = output.settings.clusters["ml"].mode == "advise" && output.settings.clusters["ml"].reconcile == "* * * * *"
    error_message = "a cluster begins by being advised on, and is looked at every minute"
  }
}

run "refuses_names_and_places_that_are_none" {
  command = plan
  variables {
    google = merge(var.google, {
      project = "Acme", region = "us-central1-c", name = "Pilot_Light", environment = "production", policy_file = "nowhere.yaml"
      alerts  = { email = "ops", secrets = { PILOTLIGHT_MODE = "x" } }
    })
  }
  expect_failures = [output.settings]
  assert {
    condition = local.refused == [
      "name has 2 to 10 lower-case letters and digits and begins with a letter.",
      "project is a project's id: 6 to 30 lower-case letters, digits and hyphens, beginning with a letter.",
      "region is written as Google does, as in europe-west1; a zone such as europe-west1-b is no region. So is scheduler.",
      "environment has 2 to 4 lower-case letters and digits, as dev, prod or test: accounts' names have room for no more.",
      "policy_file names no file. The path is seen from where terraform runs; begin with a copy of examples/civo/policy.yaml.",
      "alerts.email is no e-mail address.",
      "alerts.secrets maps the names of environment variables (capital letters, not beginning with PILOTLIGHT_) to names of secrets, as { SLACK_URL = \"pilotlight-slack\" }.",
    ]
    error_message = join("\n", local.refused)
  }
}

run "leaves_it_to_google_which_regions_there_are" {
  command = plan
  variables { google = merge(var.google, { region = "asia-southeast9", scheduler = "asia-southeast1" }) }
  assert {
    condition     = output.settings.region == "asia-southeast9" && output.settings.scheduler == "asia-southeast1"
    error_message = "a region that is new to Pilotlight is none to refuse"
  }
}

run "refuses_no_cluster" {
  command = plan
  variables { google = merge(var.google, { clusters = {} }) }
  expect_failures = [output.settings]
  assert {
    condition     = local.refused == ["clusters is empty: name at least one cluster."]
    error_message = join("\n", local.refused)
  }
}

run "refuses_clusters_that_cannot_be" {
  command = plan
  variables {
    google = merge(var.google, {
      clusters = {
        ML_prod = { mode = "full", reconcile = "every minute" }
        two     = { civo = { region = "LON1", cluster_id = "c" }, gke = { location = "europe-west1", cluster = "two" }, karpenter = { claims = true } }
        ml      = { gke = { location = "europe-west1", cluster = "training", queue = true } }
      }
    })
  }
  expect_failures = [output.settings]
  assert {
    condition = local.refused == [
      "A cluster's name has lower-case letters, digits and hyphens, begins with a letter, does not end with a hyphen, and is at most 20 long.",
      "A cluster's mode is one of observe, advise, scale-up and act. Begin with advise: it decides and tells, and changes nothing.",
      "A cluster is either Civo's or GKE's: give it civo = {...} or gke = {...}, not both. With neither, its kubeconfig lies in a secret.",
      "Call a GKE cluster by its own name here: its events in Cloud Logging carry that name, and would not be taken for another's.",
      "karpenter is for a cluster that a kubeconfig reaches: leave civo and gke out, or karpenter.",
      "gke.queue asks GKE's queue for nodes, and goes with gke.buys = true.",
      "A schedule is five fields as cron has them: \"* * * * *\" is every minute, \"7 * * * *\" seven minutes past every hour.",
    ]
    error_message = join("\n", local.refused)
  }
}

run "refuses_regions_of_other_partitions_by_their_names" {
  command = plan
  variables { google = merge(var.google, { aws = { account_id = "123456789012", region = "us-gov-west-1" } }) }
  expect_failures = [output.settings]
  assert {
    condition     = local.refused == ["aws.region is one of AWS's own: China, GovCloud, the European Sovereign Cloud and the isolated regions are not served."]
    error_message = join("\n", local.refused)
  }
}

run "refuses_a_place_of_state_that_is_none" {
  command = plan
  variables { google = merge(var.google, { state = { firestore = {}, dynamodb = {} } }) }
  expect_failures = [output.settings]
  assert {
    condition = local.refused == [
      "State lies in one place: give state.firestore or state.dynamodb, not both.",
      "Functions on Google Cloud hold no AWS credentials: state.dynamodb goes with network.path = \"in-cluster\".",
      "state.dynamodb needs to know where: give aws = {account_id, region}.",
    ]
    error_message = join("\n", local.refused)
  }
}

run "takes_a_table_for_functions_inside_a_cluster_which_need_no_bundles" {
  command = plan
  variables {
    google = merge(var.google, {
      state     = { dynamodb = {} }
      network   = { path = "in-cluster" }
      aws       = { account_id = "123456789012", region = "eu-west-1" }
      functions = { bundles = "./nowhere" }
    })
  }
  assert {
    condition     = length(local.refused) == 0
    error_message = join("\n", local.refused)
  }
}

run "refuses_an_unknown_path" {
  command = plan
  variables { google = merge(var.google, { network = { path = "vpn" } }) }
  expect_failures = [output.settings]
  assert {
    condition     = local.refused == ["network.path is one of static-addresses, dns-endpoint and in-cluster."]
    error_message = join("\n", local.refused)
  }
}

run "refuses_the_dns_endpoint_for_others_than_gke" {
  command = plan
  variables { google = merge(var.google, { network = { path = "dns-endpoint" } }) }
  expect_failures = [output.settings]
  assert {
    condition     = local.refused == ["network.path = \"dns-endpoint\" is for GKE clusters reached by DNS: give each cluster gke = {...}, or choose static-addresses."]
    error_message = join("\n", local.refused)
  }
}

run "refuses_functions_that_cannot_be" {
  command = plan
  variables {
    google = merge(var.google, {
      functions = {
        memory    = "512", timeout_s = 900, min_instances = 400, max_instances = 300, ingress = "ALLOW_ALL", bundles = "./nowhere"
        backoff_s = { min = 1200, max = 601 }, rollback_to = { pod_pending = "v1.2" }
      }
    })
  }
  expect_failures = [output.settings]
  assert {
    condition = local.refused == [
      "functions.min_instances is larger than functions.max_instances.",
      "functions: min_instances is 0 or more, max_instances between 1 and 100.",
      "functions.memory is at least 256Mi, written as in 512Mi.",
      "functions.timeout_s is between 20 and 540 seconds: Pub/Sub waits no longer than 600 for an answer.",
      "functions.backoff_s: min is larger than max; the first wait is the shortest.",
      "functions.backoff_s: Pub/Sub waits between 1 and 600 seconds.",
      "A bundle is rolled back to by its SHA-256, 64 characters of 0-9 and a-f, as the output `bundles` printed it.",
      "functions.ingress is ALLOW_INTERNAL_ONLY or ALLOW_INTERNAL_AND_GCLB: nothing outside Google calls a function.",
      "Bundles are missing in functions.bundles: run `make package` first.",
    ]
    error_message = join("\n", local.refused)
  }
}

run "refuses_what_is_read_written_and_paid_elsewhere" {
  command = plan
  variables {
    google = merge(var.google, {
      telemetry  = "prometheus:9090"
      bills      = "s3://acme"
      audit      = { bucket = "gs://acme", account = "user:ops@example.com" }
      encryption = { key = "mine" }
      budget     = { billing_account = "mine", usd_per_month = -5.5 }
      aws        = { account_id = "1234", region = "eu-west-1a" }
    })
  }
  expect_failures = [output.settings]
  assert {
    condition = local.refused == [
      "telemetry is the address of a Prometheus, as https://HOST/...; leave it out where functions reach none.",
      "bills is civo:REGION, focus:gs://BUCKET/PREFIX/*.parquet or bigquery:PROJECT.DATASET.TABLE; leave it out where there is no bill to read.",
      "audit.bucket is a bucket's name alone, as our-audit.",
      "audit.account is the e-mail of a service account, as exporter@acme-audit.iam.gserviceaccount.com.",
      "encryption.key is written projects/P/locations/L/keyRings/R/cryptoKeys/K, as `gcloud kms keys list` prints it.",
      "budget.usd_per_month is a whole number of dollars larger than 0; leave budget out to watch nothing.",
      "budget.billing_account is written as in 012345-6789AB-CDEF01.",
      "aws.account_id is the account's 12 digits, in quotes.",
      "aws.region is written as AWS does, as in eu-west-1.",
    ]
    error_message = join("\n", local.refused)
  }
}

run "refuses_an_exporter_that_writes_the_state" {
  command = plan
  variables {
    google = merge(var.google, {
      state = { accounts = ["home@acme.iam.gserviceaccount.com"] }
      audit = { bucket = "acme-audit", account = "home@acme.iam.gserviceaccount.com" }
    })
  }
  expect_failures = [output.settings]
  assert {
    condition     = local.refused == ["audit.account may not be one of state.accounts: who writes the state must not carry its proof out."]
    error_message = join("\n", local.refused)
  }
}

run "refuses_what_it_does_not_know_at_any_depth" {
  command = plan
  variables {
    given = merge(var.google, {
      regoin    = "europe-west1"
      clusters  = { ml = { mdoe = "act", gke = { location = "europe-west1", cluster = "ml", dsn = false } } }
      alerts    = { email = "ops@example.com", secrets = { SLACK_URL = "pilotlight-slack" } }
      functions = { bundles = "../../google/tests/bundles", rollback_to = { pod_pending = "v1.2" }, memory_mb = 512 }
    })
    google = merge(var.google, {
      clusters  = { ml = { gke = { location = "europe-west1", cluster = "ml" } } }
      alerts    = { email = "ops@example.com", secrets = { SLACK_URL = "pilotlight-slack" } }
      functions = { bundles = "../../google/tests/bundles", rollback_to = { pod_pending = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" } }
    })
  }
  expect_failures = [output.settings]
  assert {
    condition     = [for said in local.refused : split(" ", said)[0]] == ["clusters.ml.gke.dsn", "clusters.ml.mdoe", "functions.memory_mb", "regoin"]
    error_message = join("\n", local.refused)
  }
}
