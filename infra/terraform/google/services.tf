# APIs, and the accounts of Google's own that they act as. Nothing of Google is made before its API is there.
# Before the first of all, by hand: gcloud services enable cloudresourcemanager.googleapis.com serviceusage.googleapis.com

locals {
  apis = toset(concat(
    ["cloudresourcemanager.googleapis.com", "iam.googleapis.com", "serviceusage.googleapis.com"],
    tolist(var.apis),
    local.location == null ? [] : ["firestore.googleapis.com"],
    local.key == null ? [] : ["cloudkms.googleapis.com"],
    !local.hosted ? [] : [
      "artifactregistry.googleapis.com", "cloudbuild.googleapis.com", "cloudfunctions.googleapis.com",
      "cloudscheduler.googleapis.com", "compute.googleapis.com", "logging.googleapis.com", "monitoring.googleapis.com",
      "pubsub.googleapis.com", "run.googleapis.com", "secretmanager.googleapis.com", "storage.googleapis.com",
    ],
    local.hosted && length(module.plan.reaches_gke) > 0 ? ["container.googleapis.com"] : [],
    local.hosted && length(module.plan.buys_gke) > 0 ? ["compute.googleapis.com"] : [],
    local.hosted && local.settings.budget != null ? ["billingbudgets.googleapis.com", "cloudbilling.googleapis.com"] : [],
  ))

  # Pub/Sub's agent signs what it pushes and dead-letters; Cloud Run's stands in a shared subnetwork; the others, and it,
  # encrypt with a key that is yours.
  agents = toset(concat(
    local.hosted ? ["pubsub.googleapis.com"] : [],
    local.hosted && local.key != null ? [
      "artifactregistry.googleapis.com", "cloudfunctions.googleapis.com", "run.googleapis.com", "secretmanager.googleapis.com",
    ] : [],
    local.location != null && local.key != null ? ["firestore.googleapis.com"] : [],
    local.shared ? ["run.googleapis.com"] : [],
  ))
  pubsub_agent = try(google_project_service_identity.this["pubsub.googleapis.com"].member, null)
}

resource "google_project_service" "this" {
  for_each = local.apis

  project            = local.settings.project
  service            = each.key
  disable_on_destroy = false
}

# An API that was just enabled is refused for a while by some of Google's servers.
resource "terraform_data" "apis" {
  triggers_replace = sort([for api in google_project_service.this : api.service])

  provisioner "local-exec" {
    command = "sleep ${local.settings.wait_s.apis}"
  }
}

# A project has no agent of an API before something asks for it: rights given to one before that are refused.
resource "google_project_service_identity" "this" {
  provider = google-beta
  for_each = local.agents

  project = local.settings.project
  service = each.key

  depends_on = [terraform_data.apis]
}

data "google_project" "this" {
  project_id = local.settings.project

  depends_on = [terraform_data.apis]
}
