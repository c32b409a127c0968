"""The outside world behind the ports: adapters/<port>/<name>.py. Adapters do not know each other."""
