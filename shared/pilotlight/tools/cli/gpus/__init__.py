"""Commands about GPUs at work: waste, run lengths, targets, who could give way, a monitor for a node."""
