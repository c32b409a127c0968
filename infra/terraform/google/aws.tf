module "aws_bridge" {
  source = "../modules/aws_bridge"
  count  = local.uses_aws && local.hosted ? 1 : 0

  settings = local.settings
  name     = module.plan.prefix
  topics   = local.topics

  depends_on = [terraform_data.apis]
}
