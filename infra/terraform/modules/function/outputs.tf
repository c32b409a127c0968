output "name" {
  description = "The function's name, which is its Cloud Run service's too."
  value       = google_cloudfunctions2_function.this.name
}

output "runtime" {
  description = "The e-mail of the account that it runs as."
  value       = google_service_account.runtime.email
}

output "runtime_id" {
  description = "The number of that account, by which other clouds know it."
  value       = google_service_account.runtime.unique_id
}

output "bundle" {
  description = "The SHA-256 of the deployed bundle: what a later rollback names."
  value       = trimsuffix(basename(local.bundle), ".zip")
}
