output "subnetwork" {
  description = "What functions are attached to."
  value = {
    network    = google_compute_network.this.id
    subnetwork = google_compute_subnetwork.this.id
  }
}

output "addresses" {
  description = "The allow-list: every request to a cluster leaves from one of these."
  value       = google_compute_address.this[*].address
}
