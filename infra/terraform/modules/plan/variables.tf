variable "settings" {
  description = "The settings of a deployment on Google Cloud: see modules/settings."
  type        = any
}

variable "policy_uri" {
  description = "Where the functions read the policy: gs://BUCKET/OBJECT."
  type        = string
}

variable "state_uri" {
  description = "PILOTLIGHT_STATE: firestore:PROJECT/DATABASE/COLLECTION."
  type        = string
}

variable "alerts_uri" {
  description = "PILOTLIGHT_ALERTS: where alerts on their way lie, which is alert_fanout's state; null: with the rest."
  type        = string
  default     = null
}
