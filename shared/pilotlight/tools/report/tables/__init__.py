"""Tables for a terminal, and their figures as JSON."""
