"""Nodes that are closed to pods that belong elsewhere, and those that are open for some that wait."""

from datetime import datetime

import msgspec


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is open for pods (by uid) that wait, until it is tried otherwise; None: as long as they wait."""

    pods: tuple[str, ...]
    until: datetime | None = None


class PlacementTaints(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that one look closes and opens: names to ``close`` and to ``open``, and the pods that each open one is for.

    ``strays`` says by pool when a pod was last seen that may run there and belongs elsewhere.
    """

    close: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    openings: dict[str, Opening] = {}
    strays: dict[str, datetime] = {}


NOTHING_PLACED = PlacementTaints()
