output "objects" {
  description = "What was applied, as kind/name."
  value       = sort(keys(kubernetes_manifest.this))
}
