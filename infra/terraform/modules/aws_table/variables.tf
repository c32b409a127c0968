variable "name" {
  description = "The table's name."
  type        = string
}

variable "protected" {
  description = "Whether deleting it is refused."
  type        = bool
  default     = true
}
