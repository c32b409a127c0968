variable "image" {
  description = "The home's image, by its digest (infra/kubernetes/home/README.md says how it is built): registry/pilotlight@sha256:..."
  type        = string

  validation {
    condition     = can(regex("^[^@\\s]+@sha256:[0-9a-f]{64}$", var.image))
    error_message = "Name the image by its digest: registry/pilotlight@sha256: and 64 digits."
  }
}
