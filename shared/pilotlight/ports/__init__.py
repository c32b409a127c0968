"""The outside world as the flows see it: the Protocols that adapters meet, in files by what is outside.

A port says what a call does and which kinds of error it raises: ``Retry`` kinds when asking again can help, ``Denied``
kinds when it cannot. It calls nothing itself and names no product. Each has one contract suite, which all its adapters
pass. Flows are given ports in ``flow.deps``; ``wiring`` chooses the adapters.
"""
