# All that a deployment is told, on each cloud. main.tf refuses what is wrong, with every reason at once.

variable "google" {
  description = "The settings of a deployment on Google Cloud, or null. project, region, policy_file, clusters and alerts.email are needed; the rest has defaults that work."
  type = object({
    # The Google Cloud project to deploy into: its id, as `gcloud projects list` shows it. Give Pilotlight one of its own.
    project = string
    # The Google Cloud region that functions and state are in, near the clusters: europe-west1, us-central1, ... scheduler: the
    # location of Cloud Scheduler, where that region has none.
    region    = string
    scheduler = optional(string)
    # The two parts that every name begins with. environment says which deployment this is; `make deploy ENV=prod` gives it.
    name        = optional(string, "pilotlight")
    environment = optional(string, "dev")
    # The policy: which pools may be lit, for whom, and what it may cost. A path, seen from where terraform runs. It is the only
    # place for behaviour; price files that it names lie beside it.
    policy_file = string
    # The clusters to look after, each by the name that alerts will use. Secrets are never given here; the output
    # `secrets_to_make` names those that must exist.
    clusters = map(object({
      # A Civo cluster, as `civo kubernetes show` prints it; or a GKE cluster, whose name is also its name here, with its project
      # where that is another (dns = false reaches its address instead of its DNS name; buys = true lets the functions that act
      # create and delete instances of its node pools' groups: docs/guides/gke.md; without it they are advised on only; pools, the
      # node pools that they may, else all whose groups are called as the cluster's; queue = true, which goes with buys: the output
      # `connect` also gives the right to ask GKE's queue for nodes of queued provisioning). With neither, the cluster is reached by
      # its kubeconfig, and its pools are advised on only.
      civo = optional(object({ region = string, cluster_id = string }))
      gke  = optional(object({ location = string, cluster = string, dns = optional(bool, true), project = optional(string), buys = optional(bool, false), pools = optional(list(string), []), queue = optional(bool, false) }))
      # observe, advise (decides and tells, changes nothing), scale-up or act.
      mode = optional(string, "advise")
      # true: kueue_admission is deployed too, and the output `connect` also gives the right to answer Kueue's admission checks
      # and to stop its queues.
      kueue = optional(bool, false)
      # For a cluster that a kubeconfig reaches (AKS): limits = true, budgets set limits of GPUs of Karpenter's NodePools; claims = true,
      # nodes are bought by its NodeClaims. Run `pilotlight connect` with the same: --karpenter, --karpenter-claims.
      karpenter = optional(object({ limits = optional(bool, false), claims = optional(bool, false) }), {})
      # true: the output `connect` also gives the right to put owners of idle GPUs to rest (classes.NAME.reclaim of the policy).
      reclaim = optional(bool, false)
      # When to look and when to count money, as cron. Less often, and time is told to teams more coarsely.
      reconcile = optional(string, "* * * * *")
      billing   = optional(string, "* * * * *")
    }))
    alerts = object({
      # Who is told when Pilotlight itself fails: dead letters, failing functions, silence.
      email = string
      # Secrets of the policy's channels: variable (url_env, token_env) to the name of the secret that holds it, as
      # {SLACK_URL = "pilotlight-slack"}.
      secrets = optional(map(string), {})
      # true: Pilotlight's own figures reach Cloud Monitoring (Managed Service for Prometheus scrapes the home in a cluster, or a
      # collector takes what functions push), and what infra/prometheus alerts on is told here too.
      figures = optional(bool, false)
    })
    # Whether deleting the state is refused. `make unprotect` sets it to false.
    protected = optional(bool, true)
    # Where state lies: firestore, a database in the functions' region unless it says another (the default); or dynamodb, a table,
    # for functions that run inside a cluster on AWS (network.path = "in-cluster"; CLOUD=google-aws alone makes it). accounts:
    # e-mails of accounts that use the Firestore database beside the functions, as that of a home inside a cluster.
    state = optional(object({
      firestore = optional(object({ location = optional(string) }))
      dynamodb  = optional(object({}))
      accounts  = optional(list(string), [])
    }), {})
    # How functions reach API servers. path is static-addresses (from fixed addresses, printed for the cluster's firewall),
    # dns-endpoint (GKE's, with no network at all; every cluster is GKE's) or in-cluster (they run inside the cluster,
    # infra/kubernetes/home; only state is made here). existing is a network of yours, whose NAT and addresses are yours too;
    # left out, one is made with so many addresses, in the range cidr.
    network = optional(object({
      path      = optional(string, "static-addresses")
      addresses = optional(number, 1)
      cidr      = optional(string, "10.8.0.0/25")
      existing  = optional(object({ network = string, subnetwork = string }))
    }), {})
    # Size and patience of the functions. A busy cluster raises max_instances. backoff_s: the first wait between two attempts at
    # one event, which doubles, and the longest. bundles: the folder that `make package` writes. rollback_to: the SHA-256 of
    # bundles that were deployed before, by function. ingress: ALLOW_INTERNAL_ONLY also holds in a VPC Service Controls
    # perimeter; ALLOW_INTERNAL_AND_GCLB lets a load balancer of yours in. billing_import: reading 3,000,000 rows took 332 MB and
    # 236 s (bench/money/bill_memory.py); the copy of one file lies in memory, too. What does not come to its end goes on, file by file.
    functions = optional(object({
      memory        = optional(string, "512Mi")
      timeout_s     = optional(number, 75)
      min_instances = optional(number, 0)
      max_instances = optional(number, 3)
      concurrency   = optional(number, 8)
      backoff_s     = optional(object({ min = number, max = number }), { min = 10, max = 600 })
      bundles       = optional(string, "../../build")
      rollback_to   = optional(map(string), {})
      ingress       = optional(string, "ALLOW_INTERNAL_ONLY")
      billing_import = optional(object({
        memory    = optional(string, "1024Mi")
        timeout_s = optional(number, 540)
      }), {})
    }), {})
    # The Prometheus that has GPUs' series, read by billing_tick: https://monitoring.googleapis.com/v1/projects/PROJECT/location/global/prometheus
    # (it may then read that project's metrics), or another that functions reach. Left out: telemetry is absent, and no waste is told.
    telemetry = optional(string)
    # What the clouds bill, read by billing_import, which is there then: civo:REGION, focus:gs://BUCKET/PREFIX/*.parquet (it may then read that bucket,
    # which tells it of new files: whoever applies needs storage.buckets.update there), or bigquery:PROJECT.DATASET.TABLE (it may then
    # read that table, by queries in that project; authorize a view on the dataset that it reads). Left out, budgets count by the meter.
    bills = optional(string)
    # Where the audit chain is carried, by whom. The account (an e-mail) may then read the decisions and add objects; project: the
    # bucket's, where it is another; locked: with --lock-days. Left out: nobody.
    audit = optional(object({ bucket = string, account = string, project = optional(string), locked = optional(bool, true) }))
    # What Pilotlight itself may cost a month, watched by Google, in the currency of the billing account. Its notices reach
    # billing_tick. Budgets for GPUs are in the policy.
    budget = optional(object({ billing_account = string, usd_per_month = number }))
    # A key of your own in Cloud KMS, in the same region: {key = "projects/P/locations/L/keyRings/R/cryptoKeys/K"}. It encrypts
    # state, messages, bundles, images and functions, and secrets that are made with it (README). Left out: Google's keys.
    encryption = optional(object({ key = string }))
    # An AWS account whose spot warnings, health events and failed launches are sent on (CLOUD=google-aws alone).
    aws = optional(object({ account_id = string, region = string }))
    # Seconds for which new APIs and new rights are left alone before they are used: Google's servers hear of them one after another.
    wait_s = optional(object({ apis = optional(number, 60), rights = optional(number, 120) }), {})
  })
  default = null
}

variable "aws" {
  description = "The settings of a deployment on AWS, or null. policy_file, clusters and alerts.email are needed; the rest has defaults that work. The region is the provider's."
  type = object({
    # The two parts that every name begins with. environment says which deployment this is; `make deploy CLOUD=aws ENV=prod` gives it.
    name        = optional(string, "pilotlight")
    environment = optional(string, "dev")
    # The policy, as on Google Cloud; its path is seen from where terraform runs.
    policy_file = string
    # The clusters to look after, each by the name that alerts and the cluster's event exporter use. Secrets are never given here;
    # the output `secrets_to_make` names those that must exist.
    clusters = map(object({
      # An EKS cluster in this region, by its name there: its node groups are acted on. Without it, the cluster is reached by a
      # kubeconfig that a secret holds, and its pools are advised on only. group_tag: a tag of yours on plain Auto Scaling groups
      # that are pools too; they are changed by it, as node groups by EKS's.
      eks = optional(object({ cluster = string, group_tag = optional(object({ key = string, value = string })) }))
      # As on Google Cloud; reconcile and billing as the Scheduler writes them.
      mode    = optional(string, "advise")
      kueue   = optional(bool, false)
      reclaim = optional(bool, false)
      # limits = true: budgets set limits of GPUs of Karpenter's NodePools, and the output `connect` gives the right to. claims = true:
      # nodes are bought by its NodeClaims instead of by groups.
      karpenter = optional(object({ limits = optional(bool, false), claims = optional(bool, false) }), {})
      reconcile = optional(string, "rate(1 minute)")
      billing   = optional(string, "rate(1 minute)")
    }))
    # Who is told when Pilotlight itself fails, and the secrets of the policy's channels: the variable that the policy names
    # (url_env, token_env), to the secret's name.
    alerts = object({ email = string, secrets = optional(map(string), {}) })
    # Whether deleting the state is refused. `make unprotect CLOUD=aws` sets it to false.
    protected = optional(bool, true)
    # Size and patience of the functions. A busy deployment raises max_instances. bundles: the folder that `make package` writes.
    # billing_import: reading 3,000,000 rows took 332 MB and 236 s (bench/money/bill_memory.py); 1,769 MB bring one CPU. disk_mb is
    # for the copy of one file and what does not fit memory. What does not come to its end goes on, file by file.
    functions = optional(object({
      memory_mb     = optional(number, 512)
      timeout_s     = optional(number, 75)
      max_instances = optional(number, 3)
      bundles       = optional(string, "../../../../build")
      billing_import = optional(object({
        memory_mb = optional(number, 1769)
        timeout_s = optional(number, 540)
        disk_mb   = optional(number, 4096)
      }), {})
    }), {})
    # Where functions run to reach API servers that have no public address. The subnets need a way to AWS's own services. Left
    # out: outside of any VPC.
    network = optional(object({ subnets = set(string), security_groups = set(string) }))
    # The Prometheus that has GPUs' series, read by billing_tick: https://aps-workspaces.REGION.amazonaws.com/workspaces/ID of this
    # account (it may then query that workspace), or another that functions reach. Left out: telemetry is absent, and no waste is told.
    telemetry = optional(string)
    # What AWS bills, read by billing_import, which is there then: focus:s3://BUCKET/PREFIX/*.parquet (it may then read that bucket),
    # or athena:REGION/WORKGROUP/DATABASE.TABLE (it may then query that table in that workgroup). Left out, budgets count by the meter.
    bills = optional(string)
    # With athena: where the table's files lie, and where the workgroup lays its results, each s3://BUCKET/PREFIX/. The workgroup
    # is yours, and bounds what a query may scan.
    athena = optional(object({ data = string, results = string }))
    # What Pilotlight itself may cost before alerts.email is told, at 50, 80 and 100 %. AWS counts what carries the tag, once it is
    # activated as a cost allocation tag. Left out: no budget.
    budget = optional(object({ usd_per_month = number, tag = optional(string, "user:app$pilotlight") }))
    # Where the audit chain is carried. Makes a policy for whoever runs `pilotlight audit export`; locked: with --lock-days, in a
    # bucket with Object Lock. Left out: none.
    audit = optional(object({ bucket = string, folder = optional(string, "pilotlight"), locked = optional(bool, true) }))
    # A key of your own in KMS, in the same region: {key = "arn:aws:kms:REGION:ACCOUNT:key/ID"}. It encrypts state, queues, topics,
    # logs, policies and functions' environments; the output `key_policy` is what the key's policy must let in, and secrets are
    # made with it. Left out: AWS's keys.
    encryption = optional(object({ key = string }))
  })
  default = null
}

variable "given" {
  description = "The same settings once more, as they were written: Terraform drops what a type does not know, so that a misspelt key would go unheard."
  type        = any
}
