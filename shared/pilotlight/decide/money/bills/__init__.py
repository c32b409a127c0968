"""Bills as they count: which of their files are current, and which of their lines are one cluster's."""
