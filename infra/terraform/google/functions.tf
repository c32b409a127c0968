# Bundles and the policy, named by what is in them, and the functions made of them.

resource "google_storage_bucket" "this" {
  #checkov:skip=CKV_GCP_62:it holds bundles and policies, which are in version control; who reads them tells nothing
  count = local.hosted ? 1 : 0

  project                     = local.settings.project
  name                        = local.bucket
  location                    = local.settings.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  # Older bundles and policies outlive their objects here, for a rollback, and go with the bucket.
  force_destroy = true

  versioning {
    enabled = true
  }

  dynamic "encryption" {
    for_each = local.key == null ? [] : [local.key]
    content {
      default_kms_key_name = encryption.value
    }
  }

  depends_on = [terraform_data.apis, google_kms_crypto_key_iam_member.agent]
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
  source = "../modules/network"
  count  = local.settings.network.path == "static-addresses" && local.settings.network.existing == null ? 1 : 0

  settings  = local.settings
  name      = module.plan.prefix
  instances = length(local.functions) * local.settings.functions.max_instances

  depends_on = [terraform_data.apis]
}

module "function" {
  source   = "../modules/function"
  for_each = local.functions

  settings   = local.settings
  function   = each.key
  plan       = each.value
  bucket     = google_storage_bucket.this[0].name
  builder    = google_service_account.builder[0].name
  agent      = local.pubsub_agent
  topics     = local.topics
  subnetwork = local.settings.network.path != "static-addresses" ? null : local.settings.network.existing != null ? local.settings.network.existing : one(module.network[*].subnetwork)
  key        = local.key
  repository = google_artifact_registry_repository.images[0].id

  depends_on = [
    google_compute_subnetwork_iam_member.shared,
    google_storage_bucket_object.policy,
    data.google_secret_manager_secret.needed,
    terraform_data.builder,
  ]
}
