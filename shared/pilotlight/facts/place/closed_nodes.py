"""Which nodes are closed to pods that belong elsewhere, and which are open for whom."""

from datetime import datetime

import msgspec


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is open for pods (by uid) that wait, until it is tried otherwise; None: as long as they wait."""

    pods: tuple[str, ...]
    until: datetime | None = None


class NodeDoors(msgspec.Struct, frozen=True, kw_only=True):
    """What one look does to nodes' doors: names to ``close`` and to ``open``, and who each open one is open for.

    ``strays`` says by pool when a pod was last seen that may run there and belongs elsewhere.
    """

    close: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    openings: dict[str, Opening] = {}
    strays: dict[str, datetime] = {}


NOTHING_PLACED = NodeDoors()
