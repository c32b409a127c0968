"""The Bills port: what clouds have billed."""
