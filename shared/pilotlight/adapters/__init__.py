"""Adapters: the outside world behind the ports, ``adapters/<port>/<name>.py``.

Here alone (and in tools) are libraries of clouds imported, and sockets opened. Adapters do not know each other: they
share the transports at this root (``http``, ``aws_api/``, ``call_timeout``) and nothing else. Every call has a deadline
and ends in an answer or one of our errors, which never holds a secret. The wiring makes them; flow sees only ports.
"""
