# What is deployed is the module google/, which says what each value means and refuses what is wrong. Here are only the
# providers, and what Terraform allows in a root alone.

module "pilotlight" {
  source = "./google"

  project     = var.project
  region      = var.region
  name        = var.name
  environment = var.environment
  policy_file = var.policy_file
  clusters    = var.clusters
  alerts      = var.alerts
  protected   = var.protected
  state       = var.state
  network     = var.network
  functions   = var.functions
  bills       = var.bills
  telemetry   = var.telemetry
  audit       = var.audit
  budget      = var.budget
  encryption  = var.encryption
  aws         = var.aws
}

# What an earlier `make destroy` left behind, because it was protected or because Google keeps its name, is taken over.
locals {
  prefix = "${var.name}-${var.environment}"
  pool   = "projects/${var.project}/locations/global/workloadIdentityPools/${local.prefix}-aws"
}

import {
  for_each = contains(var.adopt, "database") ? toset(["projects/${var.project}/databases/${local.prefix}"]) : []
  id       = each.key
  to       = module.pilotlight.module.state.google_firestore_database.this[0]
}

import {
  for_each = contains(var.adopt, "database") ? toset(["projects/${var.project}/databases/${local.prefix}-alerts"]) : []
  id       = each.key
  to       = module.pilotlight.module.alerts_state[0].google_firestore_database.this[0]
}

import {
  for_each = contains(var.adopt, "aws") ? toset([local.pool]) : []
  id       = each.key
  to       = module.pilotlight.module.aws_bridge[0].google_iam_workload_identity_pool.this
}

import {
  for_each = contains(var.adopt, "aws") ? toset(["${local.pool}/providers/aws"]) : []
  id       = each.key
  to       = module.pilotlight.module.aws_bridge[0].google_iam_workload_identity_pool_provider.this
}
