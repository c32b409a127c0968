"""Adapters of the Outbox port: the place where messages and dead letters go out.

``local`` keeps them in memory or a folder, ``sns`` and ``pubsub`` publish to a topic. A message is sent at least once
under its id, and a call returns only when it is confirmed. The wiring makes them; deliveries and the doorway call them.
"""
