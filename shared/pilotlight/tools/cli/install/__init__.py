"""Commands that put Pilotlight on a cluster and take it off again: account, pools, queues, manifests, agents."""
