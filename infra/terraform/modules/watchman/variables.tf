variable "image" {
  description = "The home's image, by its digest (infra/kubernetes/home/README.md says how it is built): registry/pilotlight@sha256:..."
  type        = string

  validation {
    condition     = can(regex("^[^@\\s]+@sha256:[0-9a-f]{64}$", var.image))
    error_message = "Name the image by its digest: registry/pilotlight@sha256: and 64 digits."
  }
}

variable "placement" {
  description = "Whether the policy keeps nodes for pods, by homes: the watchman that opens them should Pilotlight fall silent."
  type        = bool
  default     = true
}

variable "handback_role_arn" {
  description = "The role at AWS of the watchman that hands pools back (docs/guides/eks.md has its rights), for pools with on_silence: hand-back; empty for none."
  type        = string
  default     = ""

  validation {
    condition     = var.handback_role_arn == "" || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$", var.handback_role_arn))
    error_message = "Name a role by its ARN: arn:aws:iam::123456789012:role/pilotlight-handback."
  }
}
