"""The Pools port over clouds."""
