# What infra/kubernetes/placement/watchman.yaml says, object by object, with an image of your own.

locals {
  said    = file("${path.module}/../../../kubernetes/placement/watchman.yaml")
  objects = [for text in split("\n---\n", replace(local.said, "registry.example.com/pilotlight:0.1.0", var.image)) : yamldecode(text)]
}

resource "kubernetes_manifest" "this" {
  for_each = { for object in local.objects : "${object.kind}/${object.metadata.name}" => object }

  manifest = each.value
  # Pilotlight renews the Lease at every look: what is in it is not Terraform's.
  computed_fields = concat(["metadata.annotations", "metadata.labels"], each.value.kind == "Lease" ? ["spec"] : [])
}
