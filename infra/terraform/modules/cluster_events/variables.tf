variable "project" {
  description = "The Google Cloud project of the topics."
  type        = string
}

variable "sinks" {
  description = "Log sinks by any name: the project of the clusters, their own name, filter, and the short name of the topic they feed."
  type        = map(object({ project = string, name = string, filter = string, topic = string }))
}

variable "topics" {
  description = "Topics by their short name."
  type        = map(object({ id = string, name = string, dead_id = optional(string) }))
}
