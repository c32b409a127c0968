# Secrets are made outside, so that no value passes through Terraform or its state. Here they are only looked up, so that
# a missing one is named before anything is built.

data "google_secret_manager_secret" "needed" {
  for_each = toset(local.hosted ? distinct(flatten([for function in values(local.functions) : values(function.secrets)])) : [])

  project   = local.settings.project
  secret_id = each.key

  depends_on = [terraform_data.apis]
}
