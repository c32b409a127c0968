output "settings" {
  description = "The settings with every default in its place. Nothing that needs them is worked out where one is refused."
  value       = local.settings

  precondition {
    condition     = length(local.refused) == 0
    error_message = join("\n", local.refused)
  }
}
