# Bundles and the policy, named by what is in them, and the functions made of them.

resource "google_storage_bucket" "this" {
  #checkov:skip=CKV_GCP_62:reads of bundles and policy are in Cloud Audit Logs; a bucket of access logs adds nothing
  count = local.hosted ? 1 : 0

  project                     = var.project
  name                        = local.bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = !var.state.protected

  versioning {
    enabled = true
  }

  depends_on = [google_project_service.this]
}

resource "google_storage_bucket_object" "policy" {
  for_each = local.hosted ? local.policy_files : {}

  bucket       = google_storage_bucket.this[0].name
  name         = "${local.policy_folder}/${each.key}"
  source       = each.value
  content_type = "application/yaml"

  # An older one stays: instances of the revision before read it until the new one takes over, and a rollback finds it.
  deletion_policy = "ABANDON"
}

module "network" {
  source = "./modules/network"
  count  = var.network.path == "static-addresses" ? 1 : 0

  project   = var.project
  region    = var.region
  name      = module.plan.prefix
  addresses = var.network.addresses
  cidr      = var.network.cidr

  depends_on = [google_project_service.this]
}

module "function" {
  source   = "./modules/function"
  for_each = local.functions

  project    = var.project
  region     = var.region
  function   = each.key
  plan       = each.value
  bucket     = google_storage_bucket.this[0].name
  builder    = google_service_account.builder[0].name
  agent      = local.pubsub_agent
  topics     = local.topics
  backoff_s  = var.functions.backoff_s
  subnetwork = one(module.network[*].subnetwork)

  bundle = {
    file        = "${var.functions.bundles}/${each.key}.zip"
    rollback_to = lookup(var.functions.rollback_to, each.key, null)
  }
  size = {
    memory        = var.functions.memory
    min_instances = var.functions.min_instances
    max_instances = var.functions.max_instances
    concurrency   = var.functions.concurrency
  }

  depends_on = [
    google_storage_bucket_object.policy,
    data.google_secret_manager_secret.needed,
    google_project_iam_member.builder,
    google_storage_bucket_iam_member.builder,
  ]
}
