variable "project" {
  description = "The Google Cloud project of the clusters and topics."
  type        = string
}

variable "sinks" {
  description = "Log sinks by any name: their own name, filter, and the short name of the topic they feed."
  type        = map(object({ name = string, filter = string, topic = string }))
}

variable "topics" {
  description = "Topics by their short name."
  type        = map(object({ id = string, name = string, dead_id = optional(string) }))
}
