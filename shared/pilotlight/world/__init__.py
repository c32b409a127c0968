"""A working cloud and cluster with a clock, behind the ports: the embedded default, the replay and the tests' fake."""
