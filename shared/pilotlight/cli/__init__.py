"""The `pilotlight` command."""
