module "state" {
  source = "./modules/state"

  project   = var.project
  name      = "${var.name}-${var.environment}"
  protected = var.state.protected
  accounts  = merge({ for function, made in module.function : function => made.runtime }, { for email in var.state.accounts : email => email })
  dynamodb  = var.state.dynamodb
  firestore = var.state.dynamodb != null ? null : { location = coalesce(try(var.state.firestore.location, null), var.region) }
}
