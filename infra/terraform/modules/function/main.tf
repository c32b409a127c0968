# One function: its bundle by hash, its own account, and a push subscription of its own for every topic it listens to.

locals {
  file        = "${var.settings.functions.bundles}/${var.function}.zip"
  rollback_to = lookup(var.settings.functions.rollback_to, var.function, null)
  bundle      = "bundles/${var.function}/${coalesce(local.rollback_to, filesha256(local.file))}.zip"

  # The runtime account may read these and nothing else of the kind.
  secrets = var.plan.secrets
}

# Named by what is in it: the same bytes are the same object, and an older one stays for a rollback.
resource "google_storage_bucket_object" "bundle" {
  count = local.rollback_to == null ? 1 : 0

  bucket          = var.bucket
  name            = local.bundle
  source          = local.file
  deletion_policy = "ABANDON"
}

resource "google_service_account" "runtime" {
  project      = var.settings.project
  account_id   = var.plan.account
  display_name = "Pilotlight: ${var.function} runs as this"
}

resource "google_service_account" "invoker" {
  project      = var.settings.project
  account_id   = var.plan.invoker
  display_name = "Pilotlight: Pub/Sub calls ${var.function} as this"
}

resource "google_cloudfunctions2_function" "this" {
  project  = var.settings.project
  location = var.settings.region
  name     = var.plan.name

  kms_key_name = var.key

  build_config {
    # The Python that scripts/bundle.py compiles for.
    runtime           = "python311"
    entry_point       = var.function
    service_account   = var.builder
    docker_repository = var.repository

    source {
      storage_source {
        bucket = var.bucket
        object = local.bundle
      }
    }
  }

  service_config {
    service_account_email            = google_service_account.runtime.email
    ingress_settings                 = var.settings.functions.ingress
    available_memory                 = var.plan.memory
    available_cpu                    = "1"
    timeout_seconds                  = var.plan.timeout_s
    min_instance_count               = var.settings.functions.min_instances
    max_instance_count               = var.settings.functions.max_instances
    max_instance_request_concurrency = var.settings.functions.concurrency
    all_traffic_on_latest_revision   = true
    environment_variables            = var.plan.environment
    direct_vpc_egress                = var.subnetwork == null ? null : "VPC_EGRESS_ALL_TRAFFIC"

    dynamic "direct_vpc_network_interface" {
      for_each = var.subnetwork == null ? [] : [var.subnetwork]
      content {
        network    = direct_vpc_network_interface.value.network
        subnetwork = direct_vpc_network_interface.value.subnetwork
      }
    }

    dynamic "secret_environment_variables" {
      for_each = local.secrets
      content {
        key        = secret_environment_variables.key
        project_id = var.settings.project
        secret     = secret_environment_variables.value
        version    = "latest"
      }
    }
  }

  depends_on = [google_storage_bucket_object.bundle, google_secret_manager_secret_iam_member.reads]
}

# Who may call it: the invoker alone, over the service that runs it.
resource "google_cloud_run_v2_service_iam_member" "invoker" {
  project  = var.settings.project
  location = var.settings.region
  name     = google_cloudfunctions2_function.this.name
  role     = "roles/run.invoker"
  member   = "serviceAccount:${google_service_account.invoker.email}"
}

# Pushes show a token of the invoker's, which Pub/Sub's agent makes.
resource "google_service_account_iam_member" "tokens" {
  service_account_id = google_service_account.invoker.name
  role               = "roles/iam.serviceAccountOpenIdTokenCreator"
  member             = var.agent
}

resource "google_pubsub_subscription" "push" {
  for_each = var.plan.subscriptions

  project                    = var.settings.project
  name                       = each.value.name
  topic                      = var.topics[each.key].id
  filter                     = each.value.filter
  ack_deadline_seconds       = each.value.ack_deadline_s
  message_retention_duration = "${each.value.retention_s}s"
  enable_message_ordering    = each.value.ordered

  push_config {
    push_endpoint = google_cloudfunctions2_function.this.service_config[0].uri

    oidc_token {
      service_account_email = google_service_account.invoker.email
      audience              = google_cloudfunctions2_function.this.service_config[0].uri
    }
  }

  retry_policy {
    minimum_backoff = "${var.settings.functions.backoff_s.min}s"
    maximum_backoff = "${var.settings.functions.backoff_s.max}s"
  }

  dead_letter_policy {
    dead_letter_topic     = var.topics[each.key].dead_id
    max_delivery_attempts = each.value.attempts
  }

  # Silence for a month is no reason to forget who listens.
  expiration_policy {
    ttl = ""
  }
}

# Pub/Sub's agent takes from the source what it hands to the dead-letter topic.
resource "google_pubsub_subscription_iam_member" "agent" {
  for_each = var.plan.subscriptions

  project      = var.settings.project
  subscription = google_pubsub_subscription.push[each.key].name
  role         = "roles/pubsub.subscriber"
  member       = var.agent
}

resource "google_pubsub_topic_iam_member" "publishes" {
  for_each = toset(var.plan.publishes)

  project = var.settings.project
  topic   = var.topics[each.key].name
  role    = "roles/pubsub.publisher"
  member  = "serviceAccount:${google_service_account.runtime.email}"
}

resource "google_secret_manager_secret_iam_member" "reads" {
  for_each = local.secrets

  project   = var.settings.project
  secret_id = each.value
  role      = "roles/secretmanager.secretAccessor"
  member    = "serviceAccount:${google_service_account.runtime.email}"
}

resource "google_storage_bucket_iam_member" "policy" {
  bucket = var.bucket
  role   = "roles/storage.objectViewer"
  member = "serviceAccount:${google_service_account.runtime.email}"

  condition {
    title      = "policies-only"
    expression = "resource.name.startsWith(\"projects/_/buckets/${var.bucket}/objects/policy/\")"
  }
}
