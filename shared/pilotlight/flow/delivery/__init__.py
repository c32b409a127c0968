"""alert_fanout: every alert to the channels that want it, each once."""
