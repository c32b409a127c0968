mock_provider "kubernetes" {}

variables {
  image = "registry.example/pilotlight@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
}

run "it_has_all_that_the_file_has" {
  command = apply
  assert {
    condition = output.objects == tolist([
      "ClusterRole/pilotlight-watchman", "ClusterRoleBinding/pilotlight-watchman", "CronJob/pilotlight-watchman",
      "Lease/pilotlight-placement", "Role/pilotlight-placement", "RoleBinding/pilotlight-placement",
      "ServiceAccount/pilotlight-watchman", "ValidatingAdmissionPolicy/pilotlight-watchman",
      "ValidatingAdmissionPolicyBinding/pilotlight-watchman",
    ])
    error_message = "the Lease, the account with its rights and limits, and the CronJob"
  }
}

run "it_runs_the_image_that_is_named" {
  command = apply
  assert {
    condition     = kubernetes_manifest.this["CronJob/pilotlight-watchman"].manifest.spec.jobTemplate.spec.template.spec.containers[0].image == var.image
    error_message = "the image is the one given"
  }
}

run "an_image_without_a_digest_is_refused" {
  command = plan
  variables { image = "registry.example/pilotlight:latest" }
  expect_failures = [var.image]
}
