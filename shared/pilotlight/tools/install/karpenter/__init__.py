"""What is given back to Karpenter: limits of its NodePools, and machines that we asked it for by claims."""
