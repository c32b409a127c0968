"""The world's scheduler: where a pod binds, by filters of its own."""
