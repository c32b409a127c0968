mock_provider "google" {
  mock_resource "google_cloudfunctions2_function" {
    defaults = { name = "pilotlight-dev-pod-pending" }
  }
}

override_resource {
  target = google_service_account.runtime
  values = { email = "runtime@acme.iam.gserviceaccount.com" }
}

override_resource {
  target = google_service_account.invoker
  values = { email = "invoker@acme.iam.gserviceaccount.com" }
}

variables {
  repository = "projects/p/locations/l/repositories/r"
  settings = {
    project = "acme-pilotlight"
    region  = "europe-west1"
    functions = {
      memory        = "512Mi"
      min_instances = 0
      max_instances = 3
      concurrency   = 8
      backoff_s     = { min = 10, max = 600 }
      bundles       = "../../google/tests/bundles"
      rollback_to   = {}
      ingress       = "ALLOW_INTERNAL_ONLY"
    }
  }
  function = "pod_pending"
  bucket   = "acme-bundles"
  builder  = "projects/acme-pilotlight/serviceAccounts/build@acme.iam.gserviceaccount.com"
  agent    = "serviceAccount:service-1@gcp-sa-pubsub.iam.gserviceaccount.com"
  topics = {
    pod-events  = { id = "projects/acme-pilotlight/topics/in", name = "in", dead_id = "projects/acme-pilotlight/topics/in-dead" }
    alerts      = { id = "projects/acme-pilotlight/topics/alerts", name = "alerts" }
    dead-letter = { id = "projects/acme-pilotlight/topics/dl", name = "dl" }
  }
  plan = {
    name        = "pilotlight-dev-pod-pending"
    account     = "pilotlight-dev-pending"
    invoker     = "pilotlight-dev-pending-push"
    memory      = "512Mi"
    timeout_s   = 60
    environment = { PILOTLIGHT_MODE = "advise" }
    secrets     = { KUBECONFIG_ML = "ml-kubeconfig" }
    publishes   = ["alerts", "dead-letter"]
    subscriptions = {
      pod-events = { name = "in-pending", filter = "", attempts = 12, ack_deadline_s = 70, retention_s = 7200 }
    }
  }
}

run "only_the_invoker_may_call_it" {
  command = apply
  assert {
    condition     = google_cloud_run_v2_service_iam_member.invoker.role == "roles/run.invoker" && google_cloud_run_v2_service_iam_member.invoker.member == "serviceAccount:invoker@acme.iam.gserviceaccount.com"
    error_message = "the invoker, and nobody else"
  }
  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].ingress_settings == "ALLOW_INTERNAL_ONLY"
    error_message = "nothing from outside reaches it"
  }
  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].service_account_email == "runtime@acme.iam.gserviceaccount.com"
    error_message = "it runs as its own account, which is not the one that may call it"
  }
}

run "a_push_shows_who_it_is_is_tried_again_and_is_never_lost" {
  command = apply
  assert {
    condition     = google_pubsub_subscription.push["pod-events"].push_config[0].oidc_token[0].service_account_email == "invoker@acme.iam.gserviceaccount.com"
    error_message = "pushes carry the invoker's token"
  }
  assert {
    condition     = google_service_account_iam_member.tokens.role == "roles/iam.serviceAccountOpenIdTokenCreator" && google_service_account_iam_member.tokens.member == var.agent
    error_message = "Pub/Sub's agent may make that token, and no other"
  }
  assert {
    condition     = google_pubsub_subscription.push["pod-events"].retry_policy[0].minimum_backoff == "10s" && google_pubsub_subscription.push["pod-events"].retry_policy[0].maximum_backoff == "600s"
    error_message = "attempts wait longer and longer"
  }
  assert {
    condition     = google_pubsub_subscription.push["pod-events"].dead_letter_policy[0].dead_letter_topic == "projects/acme-pilotlight/topics/in-dead" && google_pubsub_subscription.push["pod-events"].dead_letter_policy[0].max_delivery_attempts == 12
    error_message = "after the last attempt it is dead-lettered"
  }
  assert {
    condition     = google_pubsub_subscription_iam_member.agent["pod-events"].role == "roles/pubsub.subscriber" && google_pubsub_subscription_iam_member.agent["pod-events"].member == var.agent
    error_message = "Pub/Sub's agent is exactly subscriber on the source"
  }
  assert {
    condition     = google_pubsub_subscription.push["pod-events"].expiration_policy[0].ttl == "" && !google_pubsub_subscription.push["pod-events"].enable_message_ordering
    error_message = "a quiet subscription stays"
  }
}

run "rights_are_on_the_resource_they_are_for" {
  command = apply
  assert {
    condition     = { for topic, m in google_pubsub_topic_iam_member.publishes : topic => m.role } == { alerts = "roles/pubsub.publisher", dead-letter = "roles/pubsub.publisher" }
    error_message = "it publishes to the topics it is planned to, and to no other"
  }
  assert {
    condition     = { for key, m in google_secret_manager_secret_iam_member.reads : m.secret_id => m.role } == { ml-kubeconfig = "roles/secretmanager.secretAccessor" }
    error_message = "it reads its own secrets"
  }
  assert {
    condition     = google_storage_bucket_iam_member.policy.role == "roles/storage.objectViewer"
    error_message = "it reads the policy's bucket"
  }
  assert {
    condition     = google_storage_bucket_iam_member.policy.condition[0].expression == "resource.name.startsWith(\"projects/_/buckets/acme-bundles/objects/policy/\")"
    error_message = "of that bucket it reads policies"
  }
}

run "a_secret_is_named_never_given" {
  command = apply
  assert {
    condition     = one(google_cloudfunctions2_function.this.service_config[0].secret_environment_variables).secret == "ml-kubeconfig"
    error_message = "the variable refers to the secret by its name"
  }
  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].environment_variables == tomap({ PILOTLIGHT_MODE = "advise" })
    error_message = "no secret is in the environment"
  }
}

run "the_bundle_is_named_by_its_hash" {
  command = apply
  assert {
    condition     = google_storage_bucket_object.bundle[0].name == "bundles/pod_pending/${filesha256("../../google/tests/bundles/pod_pending.zip")}.zip"
    error_message = "same bytes, same name"
  }
  assert {
    condition     = google_storage_bucket_object.bundle[0].deletion_policy == "ABANDON"
    error_message = "an older bundle stays for a rollback"
  }
}

run "with_a_subnetwork_all_requests_leave_through_it" {
  command = apply
  variables { subnetwork = { network = "n", subnetwork = "s" } }
  assert {
    condition     = google_cloudfunctions2_function.this.service_config[0].direct_vpc_egress == "VPC_EGRESS_ALL_TRAFFIC" && length(google_cloudfunctions2_function.this.service_config[0].direct_vpc_network_interface) == 1
    error_message = "every request must leave from the allow-listed addresses"
  }
}

run "without_one_there_is_no_vpc" {
  command = apply
  assert {
    condition     = length(google_cloudfunctions2_function.this.service_config[0].direct_vpc_network_interface) == 0
    error_message = "no VPC"
  }
}

run "a_key_of_ones_own_encrypts_image_and_source" {
  command = apply
  variables { key = "k" }
  assert {
    condition     = google_cloudfunctions2_function.this.kms_key_name == "k" && google_cloudfunctions2_function.this.build_config[0].docker_repository == "projects/p/locations/l/repositories/r"
    error_message = "the key, and a repository that has it"
  }
}

run "refuses_a_name_that_accounts_have_no_room_for" {
  command = plan
  variables {
    plan = {
      name          = "pilotlight-dev-pod-pending"
      account       = "pilotlight-dev-pending"
      invoker       = "pilotlight-dev-reconciliation-p"
      memory        = "512Mi"
      timeout_s     = 60
      environment   = {}
      secrets       = {}
      publishes     = []
      subscriptions = {}
    }
  }
  expect_failures = [var.plan]
}
