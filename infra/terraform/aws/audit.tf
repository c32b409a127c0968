# For whoever runs `pilotlight audit export s3://...` on a schedule: read the decisions, add objects, and neither change nor
# delete one. The bucket is yours, in an account where nobody who can write the state is at home.
resource "aws_iam_policy" "audit_export" {
  count = local.settings.audit == null ? 0 : 1

  name        = "${local.prefix}-audit-export"
  description = "Carry Pilotlight's audit chain into ${local.settings.audit.bucket}."
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([
      { Sid = "ReadDecisions", Effect = "Allow", Action = ["dynamodb:GetItem", "dynamodb:Query"], Resource = aws_dynamodb_table.this["state"].arn },
      {
        Sid      = "AddObjects", Effect = "Allow"
        Action   = concat(["s3:PutObject"], local.settings.audit.locked ? ["s3:PutObjectRetention"] : [])
        Resource = "arn:${local.partition}:s3:::${local.settings.audit.bucket}/${local.settings.audit.folder}/*"
      },
      {
        Sid       = "SeeWhatIsThere", Effect = "Allow", Action = ["s3:ListBucket"]
        Resource  = "arn:${local.partition}:s3:::${local.settings.audit.bucket}"
        Condition = { StringLike = { "s3:prefix" = ["${local.settings.audit.folder}/*"] } }
      },
    ], local.uses_key)
  })
}
