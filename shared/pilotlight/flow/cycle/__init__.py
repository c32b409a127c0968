"""One readable cycle: observe, decide, record, act, tell."""
