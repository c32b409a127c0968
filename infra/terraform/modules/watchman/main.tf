# What the watchman.yaml of infra/kubernetes/placement and handback say, object by object, with an image and a role of your own.

locals {
  kubernetes = "${path.module}/../../../kubernetes"
  files = concat(
    var.placement ? ["placement"] : [],
    var.handback_role_arn != "" ? ["handback"] : [],
  )
  said = {
    for name in local.files : name => replace(
      replace(file("${local.kubernetes}/${name}/watchman.yaml"), "registry.example.com/pilotlight:0.13.0", var.image),
      "arn:aws:iam::123456789012:role/pilotlight-handback", var.handback_role_arn,
    )
  }
  # Both have the Lease: it is one.
  objects = merge([
    for name, text in local.said : {
      for object in [for part in split("\n---\n", text) : yamldecode(part)] : "${object.kind}/${object.metadata.name}" => object
    }
  ]...)
}

resource "kubernetes_manifest" "this" {
  for_each = local.objects

  manifest = each.value
  # Pilotlight renews the Lease at every look: what is in it is not Terraform's.
  computed_fields = concat(["metadata.annotations", "metadata.labels"], each.value.kind == "Lease" ? ["spec"] : [])
}
