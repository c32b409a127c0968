# What is deployed is the module google/; modules/settings says what each value means and refuses what is wrong. Here are
# only the providers, and what Terraform allows in a root alone.

module "pilotlight" {
  source = "./google"

  # What `make` gives stands before what is written.
  settings = merge(var.settings, { for key, value in { environment = var.environment, protected = var.protected } : key => value if value != null })
}

# What an earlier `make destroy` left behind, because it was protected, is taken over.
locals {
  database = "projects/${local.project}/databases/${module.pilotlight.prefix}"
}

import {
  for_each = contains(var.adopt, "database") ? toset([local.database]) : []
  id       = each.key
  to       = module.pilotlight.module.state.google_firestore_database.this[0]
}

import {
  for_each = contains(var.adopt, "database") ? toset(["${local.database}-alerts"]) : []
  id       = each.key
  to       = module.pilotlight.module.alerts_state[0].google_firestore_database.this[0]
}
