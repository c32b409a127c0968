variable "project" {
  description = "The Google Cloud project."
  type        = string
}

variable "name" {
  description = "The topic's name."
  type        = string
}

variable "agent" {
  description = "Pub/Sub's service agent, as an IAM member."
  type        = string
}

variable "dead_letters" {
  description = "Whether there is a dead-letter topic, with a subscription that keeps what comes."
  type        = bool
}

variable "kept" {
  description = "Whether a subscription keeps the topic's own messages for people to read."
  type        = bool
  default     = false
}

variable "keep_s" {
  description = "Seconds that dead letters are kept."
  type        = number
  default     = 1209600

  validation {
    condition     = var.keep_s >= 86400 && var.keep_s <= 2678400
    error_message = "Dead letters are kept between one day and 31 days (86400 to 2678400 seconds)."
  }
}

variable "schema" {
  description = "An Avro schema that messages must follow, or null. Outside events come in shapes that no one schema has."
  type        = object({ name = string, avro = string })
  default     = null
}

variable "kms_key" {
  description = "A key of one's own in Cloud KMS, which Pub/Sub's agent may use, or null: Google's."
  type        = string
  default     = null
}
