# What is deployed is the module beside this folder; modules/settings says what each value means and refuses what is wrong.
# Here are only the provider, and what Terraform allows in a root alone.

module "pilotlight" {
  source = "../"

  # What `make` gives stands before what is written.
  settings = merge(var.settings, { for key, value in { environment = var.environment, protected = var.protected } : key => value if value != null })
}

# Tables that an earlier deployment left behind, because its Terraform state was lost, are taken over.
import {
  for_each = var.adopt ? toset(["state", "alerts"]) : []
  id       = "${module.pilotlight.prefix}-${each.key}"
  to       = module.pilotlight.aws_dynamodb_table.this[each.key]
}
