# What is deployed is the module beside this folder; modules/settings says what each value means and refuses what is wrong.
# Here are only the providers, and what Terraform allows in a root alone.

module "pilotlight" {
  source = "../"

  # What `make` gives stands before what is written; the bundles are where `make package` writes them, seen from here.
  settings = merge(
    var.settings,
    { functions = merge({ bundles = "../../../../build" }, try(var.settings.functions, null)) },
    { for key, value in { environment = var.environment, protected = var.protected } : key => value if value != null },
  )
}

# What an earlier `make destroy` left behind, because it was protected or because Google keeps its name, is taken over.
locals {
  database = "projects/${local.project}/databases/${module.pilotlight.prefix}"
  pool     = "projects/${local.project}/locations/global/workloadIdentityPools/${module.pilotlight.prefix}-aws"
}

import {
  for_each = contains(var.adopt, "database") ? toset([local.database]) : []
  id       = each.key
  to       = module.pilotlight.module.google.module.state.google_firestore_database.this[0]
}

import {
  for_each = contains(var.adopt, "database") ? toset(["${local.database}-alerts"]) : []
  id       = each.key
  to       = module.pilotlight.module.google.module.alerts_state[0].google_firestore_database.this[0]
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
