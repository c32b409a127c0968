# The policy and the price files it names lie in one folder, named by what is in them: functions see a change at once.

locals {
  policy_files = merge(
    { "policy.yaml" = local.settings.policy_file },
    { for name in try(yamldecode(file(local.settings.policy_file)).prices.files, []) : name => "${dirname(local.settings.policy_file)}/${name}" },
  )
  # Queues that the policy reads from SQS, as sqs:https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.
  read_queues = sort([
    for at in [
      for queue in try(values(yamldecode(file(local.settings.policy_file)).queues), []) :
      try(regex("^sqs:https://sqs\\.([a-z0-9-]+)\\.amazonaws\\.com/(\\d{12})/([A-Za-z0-9_.-]+)$", queue.source), null)
    ] : "arn:${local.partition}:sqs:${join(":", at)}" if at != null
  ])
  policy_folder = "policy/${sha256(join("", [for path in values(local.policy_files) : filesha256(path)]))}"
  policy_uri    = "s3://${aws_s3_bucket.this.bucket}/${local.policy_folder}/policy.yaml"
}

resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV_AWS_18:it holds policies, which are in version control; who reads them tells nothing
  #checkov:skip=CKV_AWS_144:the files are in version control; a copy in another region serves nobody
  #checkov:skip=CKV_AWS_145:a key of one's own is an input; the files hold names and dollars, no secrets
  #checkov:skip=CKV2_AWS_61:a policy is a few kilobytes, and an older one is what a rollback reads
  #checkov:skip=CKV2_AWS_62:nobody has to hear of a policy: functions start anew with it
  bucket = "${local.prefix}-${local.account}-${local.region}"

  # Older policies outlive their objects here, for a rollback, and go with the bucket.
  force_destroy = true
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket                  = aws_s3_bucket.this.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_versioning" "this" {
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_object" "policy" {
  #checkov:skip=CKV_AWS_186:a key of one's own is an input; the files hold names and dollars, no secrets
  for_each = local.policy_files

  bucket       = aws_s3_bucket.this.id
  key          = "${local.policy_folder}/${each.key}"
  source       = each.value
  source_hash  = filemd5(each.value) # An object under a key of KMS has another ETag than its MD5.
  content_type = "application/yaml"

  # Functions of before read the older folder until they know the new one.
  lifecycle {
    create_before_destroy = true
  }

  depends_on = [aws_s3_bucket_versioning.this, aws_s3_bucket_public_access_block.this, aws_s3_bucket_server_side_encryption_configuration.this]
}
