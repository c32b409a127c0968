"""Pure functions over facts: no I/O, no clock, no randomness, no environment, no logging."""
