"""GPUs that are held and not used: which pods are idle, how few replicas would do, who can share a device."""
