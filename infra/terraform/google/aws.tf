module "aws_bridge" {
  source = "../modules/aws_bridge"
  count  = local.uses_aws && local.hosted ? 1 : 0

  project    = var.project
  name       = module.plan.prefix
  account_id = var.aws.account_id
  bundle     = "${var.functions.bundles}/aws_bridge.zip"
  topics     = local.topics

  depends_on = [terraform_data.apis]
}
