variable "settings" {
  description = "The settings of the deployment, with every default in its place, as modules/settings puts them out."
  type        = any
}

variable "name" {
  description = "What the names of all parts begin with."
  type        = string
}

variable "topics" {
  description = "Topics by their short name."
  type        = map(object({ id = string, name = string, dead_id = optional(string) }))
}
