# What is refused, in plain English: each rule is what has to hold, and what is said where it does not.

locals {
  settings = merge(var.google, var.aws)
  clusters = values(local.settings.clusters)

  refused = concat(local.unknown, [for rule in concat(local.both, concat(local.google, local.aws)...) : rule[1] if !rule[0]])

  both = [
    [
      can(regex("^[a-z][a-z0-9]{1,9}$", local.settings.name)),
      "name has 2 to 10 lower-case letters and digits and begins with a letter.",
    ],
    [
      length(local.clusters) > 0,
      "clusters is empty: name at least one cluster.",
    ],
    [
      alltrue([for name in keys(local.settings.clusters) : can(regex("^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$", name))]),
      "A cluster's name has lower-case letters, digits and hyphens, begins with a letter, does not end with a hyphen, and is at most 20 long.",
    ],
    [
      alltrue([for c in local.clusters : contains(["observe", "advise", "scale-up", "act"], c.mode)]),
      "A cluster's mode is one of observe, advise, scale-up and act. Begin with advise: it decides and tells, and changes nothing.",
    ],
    [
      local.settings.telemetry == null || can(regex("^https?://[^/]+", local.settings.telemetry)),
      "telemetry is the address of a Prometheus, as https://HOST/...; leave it out where functions reach none.",
    ],
  ]

  google = [for s in var.google[*] : [
    [
      can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", s.project)),
      "project is a project's id: 6 to 30 lower-case letters, digits and hyphens, beginning with a letter.",
    ],
    [
      can(regex("^[a-z]+-[a-z]+[0-9]+$", s.region)) && (s.scheduler == null || can(regex("^[a-z]+-[a-z]+[0-9]+$", s.scheduler))),
      "region is written as Google does, as in europe-west1; a zone such as europe-west1-b is no region. So is scheduler.",
    ],
    [
      can(regex("^[a-z][a-z0-9]{1,3}$", s.environment)),
      "environment has 2 to 4 lower-case letters and digits, as dev, prod or test: accounts' names have room for no more.",
    ],
    [
      fileexists(s.policy_file),
      "policy_file names no file. The path is seen from where terraform runs; begin with a copy of examples/civo/policy.yaml.",
    ],
    [
      alltrue([for c in values(s.clusters) : c.civo == null || c.gke == null]),
      "A cluster is either Civo's or GKE's: give it civo = {...} or gke = {...}, not both. With neither, its kubeconfig lies in a secret.",
    ],
    [
      alltrue([for name, c in s.clusters : try(c.gke.cluster == name, c.gke == null)]),
      "Call a GKE cluster by its own name here: its events in Cloud Logging carry that name, and would not be taken for another's.",
    ],
    [
      alltrue([for c in values(s.clusters) : c.civo == null && c.gke == null || !c.karpenter.limits && !c.karpenter.claims]),
      "karpenter is for a cluster that a kubeconfig reaches: leave civo and gke out, or karpenter.",
    ],
    [
      alltrue([for c in values(s.clusters) : try(c.gke.buys || !c.gke.queue, true)]),
      "gke.queue asks GKE's queue for nodes, and goes with gke.buys = true.",
    ],
    [
      alltrue(flatten([for c in values(s.clusters) : [for cron in [c.reconcile, c.billing] : can(regex("^(\\S+ ){4}\\S+$", cron))]])),
      "A schedule is five fields as cron has them: \"* * * * *\" is every minute, \"7 * * * *\" seven minutes past every hour.",
    ],
    [
      can(regex("^[^@ ]+@[^@ ]+\\.[^@ ]+$", s.alerts.email)),
      "alerts.email is no e-mail address.",
    ],
    [
      alltrue([for name in keys(s.alerts.secrets) : can(regex("^[A-Z][A-Z0-9_]*$", name)) && !startswith(name, "PILOTLIGHT_")]),
      "alerts.secrets maps the names of environment variables (capital letters, not beginning with PILOTLIGHT_) to names of secrets, as { SLACK_URL = \"pilotlight-slack\" }.",
    ],
    [
      s.state.firestore == null || s.state.dynamodb == null,
      "State lies in one place: give state.firestore or state.dynamodb, not both.",
    ],
    [
      s.state.dynamodb == null || s.network.path == "in-cluster",
      "Functions on Google Cloud hold no AWS credentials: state.dynamodb goes with network.path = \"in-cluster\".",
    ],
    [
      s.state.dynamodb == null || s.aws != null,
      "state.dynamodb needs to know where: give aws = {account_id, region}.",
    ],
    [
      contains(["static-addresses", "dns-endpoint", "in-cluster"], s.network.path),
      "network.path is one of static-addresses, dns-endpoint and in-cluster.",
    ],
    [
      s.network.path != "dns-endpoint" || alltrue([for c in values(s.clusters) : try(c.gke.dns, false)]),
      "network.path = \"dns-endpoint\" is for GKE clusters reached by DNS: give each cluster gke = {...}, or choose static-addresses.",
    ],
    [
      s.functions.min_instances <= s.functions.max_instances,
      "functions.min_instances is larger than functions.max_instances.",
    ],
    [
      s.functions.min_instances >= 0 && s.functions.max_instances >= 1 && s.functions.max_instances <= 100,
      "functions: min_instances is 0 or more, max_instances between 1 and 100.",
    ],
    [
      can(regex("^[0-9]+Mi$", s.functions.memory)) && try(tonumber(trimsuffix(s.functions.memory, "Mi")), 0) >= 256,
      "functions.memory is at least 256Mi, written as in 512Mi.",
    ],
    [
      can(regex("^[0-9]+Mi$", s.functions.billing_import.memory)) && try(tonumber(trimsuffix(s.functions.billing_import.memory, "Mi")), 0) >= 512,
      "functions.billing_import.memory is at least 512Mi, written as in 1024Mi.",
    ],
    [
      s.functions.billing_import.timeout_s >= 60 && s.functions.billing_import.timeout_s <= 540,
      "functions.billing_import.timeout_s is between 60 and 540 seconds: a read that was cut off is taken up after ten minutes.",
    ],
    [
      s.functions.timeout_s >= 20 && s.functions.timeout_s <= 540,
      "functions.timeout_s is between 20 and 540 seconds: Pub/Sub waits no longer than 600 for an answer.",
    ],
    [
      s.functions.backoff_s.min <= s.functions.backoff_s.max,
      "functions.backoff_s: min is larger than max; the first wait is the shortest.",
    ],
    [
      s.functions.backoff_s.min >= 1 && s.functions.backoff_s.max <= 600,
      "functions.backoff_s: Pub/Sub waits between 1 and 600 seconds.",
    ],
    [
      alltrue([for hash in values(s.functions.rollback_to) : can(regex("^[0-9a-f]{64}$", hash))]),
      "A bundle is rolled back to by its SHA-256, 64 characters of 0-9 and a-f, as the output `bundles` printed it.",
    ],
    [
      contains(["ALLOW_INTERNAL_ONLY", "ALLOW_INTERNAL_AND_GCLB"], s.functions.ingress),
      "functions.ingress is ALLOW_INTERNAL_ONLY or ALLOW_INTERNAL_AND_GCLB: nothing outside Google calls a function.",
    ],
    [
      s.network.path == "in-cluster" || alltrue([for function in local.every_function : fileexists("${s.functions.bundles}/${function}.zip")]),
      "Bundles are missing in functions.bundles: run `make package` first.",
    ],
    [
      s.bills == null || can(regex("^(civo:[A-Z0-9]+|focus:gs://[^/]+/.+|bigquery:[a-z][a-z0-9:.-]{4,80}\\.\\w+\\.[\\w-]+)$", s.bills)),
      "bills is civo:REGION, focus:gs://BUCKET/PREFIX/*.parquet or bigquery:PROJECT.DATASET.TABLE; leave it out where there is no bill to read.",
    ],
    [
      s.audit == null || can(regex("^[a-z0-9][a-z0-9._-]{2,62}$", s.audit.bucket)),
      "audit.bucket is a bucket's name alone, as our-audit.",
    ],
    [
      s.audit == null || can(regex("^[a-z0-9-]+@[a-z0-9.-]+\\.gserviceaccount\\.com$", s.audit.account)),
      "audit.account is the e-mail of a service account, as exporter@acme-audit.iam.gserviceaccount.com.",
    ],
    [
      s.audit == null || !contains(s.state.accounts, try(s.audit.account, "")),
      "audit.account may not be one of state.accounts: who writes the state must not carry its proof out.",
    ],
    [
      s.encryption == null || can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", s.encryption.key)),
      "encryption.key is written projects/P/locations/L/keyRings/R/cryptoKeys/K, as `gcloud kms keys list` prints it.",
    ],
    [
      s.budget == null || try(s.budget.usd_per_month > 0 && floor(s.budget.usd_per_month) == s.budget.usd_per_month, false),
      "budget.usd_per_month is a whole number of dollars larger than 0; leave budget out to watch nothing.",
    ],
    [
      s.budget == null || can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", s.budget.billing_account)),
      "budget.billing_account is written as in 012345-6789AB-CDEF01.",
    ],
    [
      s.aws == null || can(regex("^[0-9]{12}$", s.aws.account_id)),
      "aws.account_id is the account's 12 digits, in quotes.",
    ],
    [
      s.aws == null || can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", s.aws.region)),
      "aws.region is written as AWS does, as in eu-west-1.",
    ],
    [
      s.aws == null || !can(regex("^(cn-|us-gov-|eusc-|us-iso|eu-iso)", s.aws.region)),
      "aws.region is one of AWS's own: China, GovCloud, the European Sovereign Cloud and the isolated regions are not served.",
    ],
  ]]

  aws = [for s in var.aws[*] : [
    [
      can(regex("^[a-z][a-z0-9]{1,3}$", s.environment)),
      "environment has 2 to 4 lower-case letters and digits, as dev, prod or test.",
    ],
    [
      fileexists(s.policy_file),
      "policy_file names no file. The path is seen from where terraform runs; begin with a copy of examples/eks/policy.yaml.",
    ],
    [
      alltrue(flatten([for c in values(s.clusters) : [for when in [c.reconcile, c.billing] : can(regex("^(rate|cron)\\(.+\\)$", when))]])),
      "A schedule is written as the Scheduler does: rate(1 minute), rate(5 minutes), cron(0 * * * ? *).",
    ],
    [
      can(regex("^[^@ ]+@[^@ ]+[.][^@ ]+$", s.alerts.email)),
      "alerts.email is an address, as ops@example.com: somebody must hear when Pilotlight itself fails.",
    ],
    [
      alltrue([for name in keys(s.alerts.secrets) : can(regex("^[A-Z][A-Z0-9_]*$", name)) && !startswith(name, "PILOTLIGHT_") && !startswith(name, "AWS_")]),
      "alerts.secrets maps the names of environment variables (capital letters, not beginning with PILOTLIGHT_ or AWS_) to names of secrets, as { SLACK_URL = \"pilotlight-slack\" }.",
    ],
    [
      s.functions.timeout_s >= 20 && s.functions.timeout_s <= 600,
      "functions.timeout_s is between 20 and 600 seconds.",
    ],
    [
      s.functions.billing_import.timeout_s >= 60 && s.functions.billing_import.timeout_s <= 540,
      "functions.billing_import.timeout_s is between 60 and 540 seconds: a read that was cut off is taken up after ten minutes.",
    ],
    [
      s.functions.billing_import.memory_mb >= 512 && s.functions.billing_import.disk_mb >= 512 && s.functions.billing_import.disk_mb <= 10240,
      "functions.billing_import: memory_mb is at least 512, disk_mb between 512 and 10240.",
    ],
    [
      s.functions.max_instances >= 2,
      "functions.max_instances is at least 2: Lambda takes no less of a queue.",
    ],
    [
      alltrue([for file in concat(local.every_function, ["layer-base", "layer-alerts", "layer-bills"]) : fileexists("${s.functions.bundles}/${file}.zip")]),
      "Bundles or layers are missing in functions.bundles: run `make package CLOUD=aws` first.",
    ],
    [
      s.network == null || try(length(s.network.subnets) > 0 && length(s.network.security_groups) > 0, false),
      "network names at least one subnet and one security group; leave it out where the API server has a public address.",
    ],
    [
      s.bills == null || can(regex("^(focus:s3://[a-z0-9.-]+/.+|athena:[a-z0-9-]{5,30}/[A-Za-z0-9_.-]{1,128}/[A-Za-z0-9_]+\\.[A-Za-z0-9_]+)$", s.bills)),
      "bills is focus:s3://BUCKET/PREFIX/*.parquet or athena:REGION/WORKGROUP/DATABASE.TABLE; leave it out where there is no bill to read.",
    ],
    [
      startswith(coalesce(s.bills, "none"), "athena:") == (s.athena != null),
      "athena goes with bills = \"athena:...\": it says where the table's files and the workgroup's results lie.",
    ],
    [
      s.athena == null || try(alltrue([for at in values(s.athena) : can(regex("^s3://[a-z0-9.-]+/([^*]+/)?$", at))]), false),
      "athena.data and athena.results are written s3://BUCKET/PREFIX/, with the slash at the end.",
    ],
    [
      s.budget == null || try(s.budget.usd_per_month > 0, false),
      "budget.usd_per_month is more than 0; leave budget out for none.",
    ],
    [
      s.budget == null || can(regex("^user:[^$]+[$].+$", s.budget.tag)),
      "budget.tag is written as AWS Budgets does, as user:app$pilotlight: the key and the value of a tag in labels.",
    ],
    [
      s.audit == null || can(regex("^[a-z0-9][a-z0-9.-]{2,62}$", s.audit.bucket)),
      "audit.bucket is a bucket's name alone, as our-audit.",
    ],
    [
      s.encryption == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", s.encryption.key)),
      "encryption.key is the key's ARN, as `aws kms describe-key` prints it; an alias can be moved to another key.",
    ],
  ]]

  every_function = ["pod_pending", "kueue_admission", "capacity_reconcile", "billing_tick", "billing_import", "spot_interruption", "alert_fanout"]
}

locals {
  # What is written and what is known, each key by its path: a map's own keys are in both.
  paths = {
    for which, it in { given = var.given, known = local.settings } : which => flatten([
      for a in keys(it) : [a, [
        for b in try(keys(it[a]), []) : ["${a}.${b}", [
          for c in try(keys(it[a][b]), []) : ["${a}.${b}.${c}", [
            for d in try(keys(it[a][b][c]), []) : "${a}.${b}.${c}.${d}"
          ]]
        ]]
      ]]
    ])
  }
  unknown = [
    for path in sort(setsubtract(local.paths.given, local.paths.known)) :
    "${path} is no setting: modules/settings/variables.tf names all there are."
  ]
}
