output "filters" {
  description = "The filters, as Cloud Logging's query language has them."
  value       = { for name, sink in google_logging_project_sink.this : name => sink.filter }
}
