# For whoever runs `pilotlight audit export gs://...` on a schedule: read the decisions (state.tf), add objects, and neither
# change nor delete one. The bucket is yours, in a project where nobody who can write the state is at home.
resource "google_project_iam_custom_role" "audit_export" {
  count = local.settings.audit == null ? 0 : 1

  project     = coalesce(local.settings.audit.project, local.settings.project)
  role_id     = replace("${module.plan.prefix}_audit_export", "-", "_")
  title       = "Pilotlight: add audit records"
  description = "Add objects with their locks and see what is there; overwriting and deleting need what is not in it."
  permissions = concat(["storage.objects.create", "storage.objects.list"], local.settings.audit.locked ? ["storage.objects.setRetention"] : [])

  depends_on = [terraform_data.apis]
}

resource "google_storage_bucket_iam_member" "audit_export" {
  count = local.settings.audit == null ? 0 : 1

  bucket = local.settings.audit.bucket
  role   = google_project_iam_custom_role.audit_export[0].name
  member = "serviceAccount:${local.settings.audit.account}"
}
