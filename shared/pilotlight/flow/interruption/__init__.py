"""spot_interruption: a notice, the rescue it begins, and what is left of it."""
