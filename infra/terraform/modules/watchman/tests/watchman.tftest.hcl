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

run "the_watchman_that_hands_back_has_its_role_and_shares_the_lease" {
  command = apply
  variables { handback_role_arn = "arn:aws:iam::210987654321:role/hand-back" }
  assert {
    condition = length(setintersection(output.objects, [
      "CronJob/pilotlight-handback", "CronJob/pilotlight-watchman", "Lease/pilotlight-placement", "Role/pilotlight-handback",
    ])) == 4
    error_message = "both watchmen, and one Lease"
  }
  assert {
    condition = kubernetes_manifest.this["ServiceAccount/pilotlight-handback"].manifest.metadata.annotations == {
      "eks.amazonaws.com/role-arn" = "arn:aws:iam::210987654321:role/hand-back"
    }
    error_message = "the role is the one given"
  }
}

run "it_may_stand_alone" {
  command = apply
  variables {
    placement         = false
    handback_role_arn = "arn:aws:iam::210987654321:role/hand-back"
  }
  assert {
    condition = output.objects == tolist([
      "CronJob/pilotlight-handback", "Lease/pilotlight-placement", "Role/pilotlight-alive", "Role/pilotlight-handback",
      "RoleBinding/pilotlight-alive", "RoleBinding/pilotlight-handback", "ServiceAccount/pilotlight-handback",
    ])
    error_message = "all that handback/watchman.yaml has, and nothing of placement"
  }
}

run "a_role_without_an_arn_is_refused" {
  command = plan
  variables { handback_role_arn = "hand-back" }
  expect_failures = [var.handback_role_arn]
}
