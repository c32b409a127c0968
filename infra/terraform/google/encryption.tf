# With a key of one's own: who of Google's agents may use it. And the images' repository, which the key encrypts too.

locals {
  encrypting = local.key == null ? {} : merge(
    { for api, agent in google_project_service_identity.this : api => agent.member },
    local.hosted ? { "storage.googleapis.com" = data.google_storage_project_service_account.this[0].member } : {},
  )
}

data "google_storage_project_service_account" "this" {
  count = local.hosted && (local.key != null || local.bills_bucket != null) ? 1 : 0

  project = local.settings.project

  depends_on = [terraform_data.apis]
}

resource "google_kms_crypto_key_iam_member" "agent" {
  for_each = local.encrypting

  crypto_key_id = local.key
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = each.value

  depends_on = [terraform_data.apis]
}

resource "google_artifact_registry_repository" "images" {
  count = local.hosted ? 1 : 0

  project       = local.settings.project
  location      = local.settings.region
  repository_id = module.plan.prefix
  format        = "DOCKER"
  kms_key_name  = local.key

  depends_on = [terraform_data.apis, google_kms_crypto_key_iam_member.agent]
}
