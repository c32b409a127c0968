# Rights that are nobody's function's own. Each function's are in modules/function, on the resource they are for.

resource "google_service_account" "builder" {
  count = local.hosted ? 1 : 0

  project      = local.settings.project
  account_id   = "${module.plan.prefix}-build"
  display_name = "Pilotlight: bundles are built into images as this"

  depends_on = [terraform_data.apis]
}

# Building needs to log, which is a right on the project, and to push images, into the functions' own repository.
resource "google_project_iam_member" "builder" {
  for_each = toset(local.hosted ? ["roles/logging.logWriter"] : [])

  project = local.settings.project
  role    = each.key
  member  = "serviceAccount:${google_service_account.builder[0].email}"
}

resource "google_artifact_registry_repository_iam_member" "builder" {
  count = local.hosted ? 1 : 0

  project    = local.settings.project
  location   = local.settings.region
  repository = google_artifact_registry_repository.images[0].name
  role       = "roles/artifactregistry.writer"
  member     = "serviceAccount:${google_service_account.builder[0].email}"
}

resource "google_storage_bucket_iam_member" "builder" {
  count = local.hosted ? 1 : 0

  bucket = google_storage_bucket.this[0].name
  role   = "roles/storage.objectViewer"
  member = "serviceAccount:${google_service_account.builder[0].email}"
}

# A build reads not our bundle but Google's copy of it, in a bucket that Google makes at the first build: it can only be
# named by a condition. With a key of one's own the bucket's name has the key's hash behind it.
resource "google_project_iam_member" "builder_sources" {
  count = local.hosted ? 1 : 0

  project = local.settings.project
  role    = "roles/storage.objectViewer"
  member  = "serviceAccount:${google_service_account.builder[0].email}"

  condition {
    title      = "sources-of-functions"
    expression = "resource.name.startsWith(\"projects/_/buckets/gcf-v2-sources-${data.google_project.this.number}-${local.settings.region}\")"
  }
}

# New rights reach all of Google's servers within about two minutes; a build before that is refused, and is not tried again.
resource "terraform_data" "builder" {
  count = local.hosted ? 1 : 0

  triggers_replace = concat(
    [for right in google_project_iam_member.builder : right.id],
    [google_storage_bucket_iam_member.builder[0].id, google_project_iam_member.builder_sources[0].id],
    [google_artifact_registry_repository_iam_member.builder[0].id],
  )

  provisioner "local-exec" {
    command = "sleep ${local.settings.wait_s.rights}"
  }
}

# GKE lets an account in by these two rights: where a cluster is, and to connect to it. What it may do inside is RBAC's.
resource "google_project_iam_custom_role" "gke" {
  for_each = local.hosted ? toset([for one in values(module.plan.reaches_gke) : one.project]) : toset([])

  project     = each.key
  role_id     = "${replace(module.plan.prefix, "-", "_")}_clusters"
  title       = "${module.plan.prefix}: reaches clusters"
  permissions = ["container.clusters.connect", "container.clusters.get"]

  depends_on = [terraform_data.apis]
}

resource "google_project_iam_member" "gke" {
  for_each = local.hosted ? module.plan.reaches_gke : {}

  project = each.value.project
  role    = google_project_iam_custom_role.gke[each.value.project].name
  member  = "serviceAccount:${module.function[each.value.function].runtime}"
}

# Node pools of GKE are bought by their managed instance groups: read by each function that looks, changed by those that act.
# Never instanceAdmin: an instance is created and deleted through its group alone. resource.type is empty where Compute Engine
# does not tell it, and then the name bounds nothing.
locals {
  buys_gke = local.hosted ? module.plan.buys_gke : {}
  of_pools = {
    read = [
      "compute.advice.capacity", "compute.advice.capacityHistory", "compute.instanceGroupManagers.get", "compute.instanceGroupManagers.list",
      "compute.instances.list", "compute.reservations.list", "compute.zoneOperations.get",
    ]
    act = ["compute.instanceGroupManagers.update"]
  }
}

resource "google_project_iam_custom_role" "pools" {
  for_each = {
    for both in setproduct(distinct([for one in values(local.buys_gke) : one.project]), keys(local.of_pools)) :
    join("/", both) => { project = both[0], does = both[1] }
  }

  project     = each.value.project
  role_id     = "${replace(module.plan.prefix, "-", "_")}_pools_${each.value.does}"
  title       = "${module.plan.prefix}: ${each.value.does == "act" ? "changes" : "reads"} node pools' groups"
  permissions = local.of_pools[each.value.does]

  depends_on = [terraform_data.apis]
}

resource "google_project_iam_member" "reads_pools" {
  for_each = local.buys_gke

  project = each.value.project
  role    = google_project_iam_custom_role.pools["${each.value.project}/read"].name
  member  = "serviceAccount:${module.function[each.value.function].runtime}"
}

resource "google_project_iam_member" "changes_pools" {
  for_each = { for key, one in local.buys_gke : key => one if one.acts }

  project = each.value.project
  role    = google_project_iam_custom_role.pools["${each.value.project}/act"].name
  member  = "serviceAccount:${module.function[each.value.function].runtime}"

  condition {
    title = "groups-of-the-cluster"
    expression = join(" || ", concat(
      ["resource.type != \"compute.googleapis.com/InstanceGroupManager\""],
      [for begins in each.value.groups : "resource.name.extract(\"/instanceGroupManagers/{name}\").startsWith(\"${begins}\")"],
    ))
  }
}

# A subnetwork of another project, as a Shared VPC has them: Cloud Run's agent stands in it for the functions.
locals {
  subnetwork = try(regex("^projects/(?P<project>[^/]+)/regions/(?P<region>[^/]+)/subnetworks/(?P<name>[^/]+)$", local.settings.network.existing.subnetwork), null)
  shared     = local.hosted && try(local.subnetwork.project != local.settings.project, false)
}

resource "google_compute_subnetwork_iam_member" "shared" {
  count = local.shared ? 1 : 0

  project    = local.subnetwork.project
  region     = local.subnetwork.region
  subnetwork = local.subnetwork.name
  role       = "roles/compute.networkUser"
  member     = google_project_service_identity.this["run.googleapis.com"].member
}

# Google's managed Prometheus: its series are the project's metrics.
locals {
  telemetry_project = try(regex("^https://monitoring\\.googleapis\\.com/v1/projects/([^/]+)/", local.settings.telemetry)[0], null)
}

resource "google_project_iam_member" "telemetry" {
  count = local.hosted && local.telemetry_project != null ? 1 : 0

  project = local.telemetry_project
  role    = "roles/monitoring.viewer"
  member  = "serviceAccount:${module.function["billing_tick"].runtime}"
}

# The bill, where it lies in a bucket.
resource "google_storage_bucket_iam_member" "bills" {
  count = local.bills_bucket == null ? 0 : 1

  bucket = local.bills_bucket
  role   = "roles/storage.objectViewer"
  member = "serviceAccount:${module.function["billing_import"].runtime}"
}

# The bill, where it lies in BigQuery: its table is read there, and queries run and are paid in its project.
resource "google_bigquery_table_iam_member" "bills" {
  count = local.bills_table == null ? 0 : 1

  project    = local.bills_table.project
  dataset_id = local.bills_table.dataset
  table_id   = local.bills_table.table
  role       = "roles/bigquery.dataViewer"
  member     = "serviceAccount:${module.function["billing_import"].runtime}"
}

resource "google_project_iam_member" "bills" {
  count = local.bills_table == null ? 0 : 1

  project = local.bills_table.project
  role    = "roles/bigquery.jobUser"
  member  = "serviceAccount:${module.function["billing_import"].runtime}"
}

# The bucket says when a file of it was written. Its project's own account says so: of another project, let that publish too.
resource "google_pubsub_topic_iam_member" "bills" {
  count = local.bills_bucket == null ? 0 : 1

  project = local.settings.project
  topic   = local.topics["bills"].name
  role    = "roles/pubsub.publisher"
  member  = data.google_storage_project_service_account.this[0].member
}

resource "google_storage_notification" "bills" {
  count = local.bills_bucket == null ? 0 : 1

  bucket             = local.bills_bucket
  topic              = local.topics["bills"].id
  payload_format     = "NONE"
  event_types        = ["OBJECT_FINALIZE"]
  object_name_prefix = local.bills_prefix

  depends_on = [google_pubsub_topic_iam_member.bills]
}
