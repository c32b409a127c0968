"""Use cases, one a file: claim, observe, decide, record, act, publish."""
