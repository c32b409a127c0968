"""What is wrong on a cluster, judged from what was read of it."""
