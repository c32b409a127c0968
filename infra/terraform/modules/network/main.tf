# Requests to clusters leave from addresses that do not change, so that an API server's firewall can name them.

resource "google_compute_network" "this" {
  #checkov:skip=CKV2_GCP_18:nothing listens in this network: functions only send, and Google's own deny-ingress stands
  project                 = var.settings.project
  name                    = var.name
  auto_create_subnetworks = false
}

resource "google_compute_subnetwork" "this" {
  #checkov:skip=CKV_GCP_76:functions have no IPv6 address here
  project                  = var.settings.project
  region                   = var.settings.region
  name                     = var.name
  network                  = google_compute_network.this.id
  ip_cidr_range            = var.settings.network.cidr
  private_ip_google_access = true

  log_config {
    aggregation_interval = "INTERVAL_10_MIN"
    flow_sampling        = 0.1
    metadata             = "EXCLUDE_ALL_METADATA"
  }
}

resource "google_compute_address" "this" {
  count = var.settings.network.addresses

  project      = var.settings.project
  region       = var.settings.region
  name         = "${var.name}-${count.index + 1}"
  address_type = "EXTERNAL"
}

resource "google_compute_router" "this" {
  project = var.settings.project
  region  = var.settings.region
  name    = var.name
  network = google_compute_network.this.id
}

resource "google_compute_router_nat" "this" {
  project                            = var.settings.project
  region                             = var.settings.region
  name                               = var.name
  router                             = google_compute_router.this.name
  nat_ip_allocate_option             = "MANUAL_ONLY"
  nat_ips                            = google_compute_address.this[*].self_link
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"

  subnetwork {
    name                    = google_compute_subnetwork.this.id
    source_ip_ranges_to_nat = ["ALL_IP_RANGES"]
  }

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}
