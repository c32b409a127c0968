"""Outside shapes to messages and facts: one file a source. Errors name the path."""
