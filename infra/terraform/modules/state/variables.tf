variable "project" {
  description = "The Google Cloud project."
  type        = string
}

variable "name" {
  description = "The database's name."
  type        = string
}

variable "location" {
  description = "Where the database is, as europe-west1; null: there is none, for state lies elsewhere."
  type        = string
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
