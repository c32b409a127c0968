"""The Outbox port: where messages go out."""
