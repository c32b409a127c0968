# The deployment on Google Cloud with what it has at AWS: the bridge from an account's events, and a table for state.

module "settings" {
  source = "../modules/settings"

  google = var.settings
  given  = var.settings
}

locals {
  settings = module.settings.settings

  # In-cluster, what takes the events runs there.
  bridged = local.settings.aws != null && local.settings.network.path != "in-cluster"
}

module "google" {
  source = "../google"

  settings = merge(local.settings, { aws = null, state = merge(local.settings.state, { dynamodb = null }) })
  table    = one(module.aws_table[*].uri)
  apis     = local.bridged ? ["iamcredentials.googleapis.com", "sts.googleapis.com"] : []
}

module "aws_table" {
  source = "../modules/aws_table"
  count  = local.settings.state.dynamodb == null ? 0 : 1

  name      = module.google.prefix
  protected = local.settings.protected
}

module "aws_bridge" {
  source = "../modules/aws_bridge"
  count  = local.bridged ? 1 : 0

  settings = local.settings
  name     = module.google.prefix
  topics   = { for topic, name in module.google.topics : topic => { id = "projects/${local.settings.project}/topics/${name}", name = name } }

  # It comes after the APIs, and after what takes its messages.
  depends_on = [module.google]
}
