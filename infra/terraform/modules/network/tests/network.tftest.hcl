mock_provider "google" {}

variables {
  name      = "pilotlight-dev"
  instances = 15
  settings = {
    project = "acme-pilotlight"
    region  = "europe-west1"
    network = { cidr = "10.8.0.0/26", addresses = 2 }
  }
}

run "requests_leave_from_fixed_addresses_only" {
  command = apply
  assert {
    condition     = google_compute_router_nat.this.nat_ip_allocate_option == "MANUAL_ONLY" && length(google_compute_router_nat.this.nat_ips) == 2
    error_message = "the NAT takes the addresses it is given, and no other"
  }
  assert {
    condition     = length(output.addresses) == 2
    error_message = "every address is printed"
  }
}

run "refuses_a_range_too_small" {
  command = plan
  variables { settings = merge(var.settings, { network = { cidr = "10.8.0.0/28", addresses = 2 } }) }
  expect_failures = [var.settings]
}

run "refuses_more_instances_than_the_range_has_addresses_for" {
  command = plan
  variables { instances = 16 }
  expect_failures = [var.settings]
}

run "refuses_no_address" {
  command = plan
  variables { settings = merge(var.settings, { network = { cidr = "10.8.0.0/26", addresses = 0 } }) }
  expect_failures = [var.settings]
}
