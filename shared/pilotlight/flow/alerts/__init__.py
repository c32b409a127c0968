"""What people and readers of messages are told."""
