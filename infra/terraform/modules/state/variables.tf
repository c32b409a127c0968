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

variable "writers" {
  description = "E-mails of the accounts that read and write, by any name."
  type        = map(string)
  default     = {}
}

variable "readers" {
  description = "E-mails of the accounts that only read, by any name."
  type        = map(string)
  default     = {}
}

variable "kms_key" {
  description = "A key of one's own in Cloud KMS, which Firestore's agent may use, or null: Google's."
  type        = string
  default     = null
}

variable "protected" {
  description = "Whether deleting it is refused."
  type        = bool
  default     = true
}
