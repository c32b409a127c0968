variable "settings" {
  description = "All that a deployment is told: project, region, policy_file, clusters and alerts.email, and what has defaults. modules/settings says what each means (`google`), and refuses what is wrong or misspelt."
  type        = any
}

variable "environment" {
  description = "Which deployment this is, the second part of every name: before what settings say. `make deploy CLOUD=google-aws ENV=prod` gives it."
  type        = string
  default     = null
}

variable "protected" {
  description = "Whether deleting the state is refused: before what settings say. `make unprotect CLOUD=google-aws` sets it to false."
  type        = bool
  default     = null
}

variable "labels" {
  description = "Labels (tags on AWS) of everything that can have some, as {team = \"ml\"}."
  type        = map(string)
  default     = { app = "pilotlight" }
}

variable "adopt" {
  description = "What an earlier deployment of this name left behind and this one takes over: database, aws (the identity pool)."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.adopt, ["database", "aws"])) == 0
    error_message = "adopt names what is taken over: database, aws."
  }
}
