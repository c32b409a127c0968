"""Lines of text for people: a plan, a first policy, an interruption, a cluster at a glance."""
