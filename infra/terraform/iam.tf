# Rights that are nobody's function's own. Each function's are in modules/function, on the resource they are for.

resource "google_service_account" "builder" {
  count = local.hosted ? 1 : 0

  project      = var.project
  account_id   = "${module.plan.prefix}-build"
  display_name = "Pilotlight: bundles are built into images as this"
}

# Building needs to log and to push images; neither role can be given on less than the project before the first build.
resource "google_project_iam_member" "builder" {
  for_each = toset(local.hosted ? ["roles/artifactregistry.writer", "roles/logging.logWriter"] : [])

  project = var.project
  role    = each.key
  member  = "serviceAccount:${google_service_account.builder[0].email}"
}

resource "google_storage_bucket_iam_member" "builder" {
  count = local.hosted ? 1 : 0

  bucket = google_storage_bucket.this[0].name
  role   = "roles/storage.objectViewer"
  member = "serviceAccount:${google_service_account.builder[0].email}"
}

# GKE lets an account in by this role, which shows clusters and no more; what it may do inside is RBAC's.
resource "google_project_iam_member" "gke" {
  for_each = toset(local.hosted ? module.plan.reaches_gke : [])

  project = var.project
  role    = "roles/container.clusterViewer"
  member  = "serviceAccount:${module.function[each.key].runtime}"
}
