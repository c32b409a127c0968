"""A cluster at a glance: its state, its pools by row, and what needs a person first."""
