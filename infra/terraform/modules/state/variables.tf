variable "project" {
  description = "The Google Cloud project."
  type        = string
}

variable "name" {
  description = "The database's or the table's name."
  type        = string
}

variable "firestore" {
  description = "A Firestore database at this location, or null."
  type        = object({ location = string })
  default     = null
}

variable "dynamodb" {
  description = "A DynamoDB table, or null."
  type        = object({})
  default     = null

  validation {
    condition     = (var.firestore == null) != (var.dynamodb == null)
    error_message = "State lies in one place: give firestore = {...} or dynamodb = {}, not both and not neither."
  }
}

variable "accounts" {
  description = "E-mails of the accounts that read and write, by any name."
  type        = map(string)
  default     = {}
}

variable "protected" {
  description = "Whether deleting it is refused."
  type        = bool
  default     = true
}
