"""A working cluster and cloud with a clock: the embedded default, the replay's world, and the tests' one fake."""
