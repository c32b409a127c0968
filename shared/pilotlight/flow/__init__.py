"""Use cases of the functions: each reads through ports, decides by ``decide/``, writes to the state, acts and tells.

Files at this level are use cases of one file (``provision``, ``reconcile``, ``refusal``, ``figures``), or stand below
all rooms (``deps``, ``abreast``). Rooms import downwards only: use cases over the cycle over budgets over alerts and
looks over records. ``doorway`` calls a use case with one cluster's ``Deps``; nothing here knows a cloud, a cluster's
API or a channel.
"""
