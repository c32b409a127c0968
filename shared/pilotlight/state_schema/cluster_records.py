"""Families of a cluster: brakes that people set, nodes, queues, and what is set apart."""

from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.facts.demand.worker_queues import QueueHistory
from pilotlight.facts.limits.brakes import Approval, Pause
from pilotlight.facts.limits.isolated_objects import Isolations
from pilotlight.facts.limits.pool_handover import Taken
from pilotlight.state_schema.table import Format, Table
from pilotlight.units import HOUR

MarkOwner = Literal["release", "budget", "placement", "rescue", "person", "sick"]
"""``release``: it is being given back. ``budget``: nothing more may be spent on it. ``rescue``: its cloud takes it.
``sick``: its GPUs are not well.
``person``: somebody opened it while it was being given back, and it rests; that alone keeps no node closed.
"""


PAUSE = Table("pause", Format(Pause))
"""``<cluster>/<pool or *>``."""

APPROVED = Table("approved", Format(Approval, 2), 30 * 24 * HOUR)
"""``<cluster>/<decision>``: kept as long as the decision, for it cannot be granted twice."""


class Ownership(msgspec.Struct, frozen=True, kw_only=True):
    """One owner's hold on a node: why, by which decision if by one, since when, and until when if that is known.

    ``given_back``: its cloud has said that it takes the instance; the node object stays for a while. ``doubted``:
    nobody confirms what it is held for, so that nothing is bought in its place.
    """

    why: str
    by: str = ""
    since: datetime
    until: datetime | None = None
    given_back: bool = False
    doubted: bool = False


class NodeMark(msgspec.Struct, frozen=True, kw_only=True):
    """All who keep a node closed to new pods, by owner."""

    node: str
    owners: dict[MarkOwner, Ownership]

    @property
    def is_closed(self) -> bool:
        """True where anyone keeps it closed."""
        return any(owner != "person" for owner in self.owners)


class Ailment(msgspec.Struct, frozen=True, kw_only=True):
    """Fault of a node's GPUs by monitoring, since ``at``; ``over``: it said then that they are well."""

    why: str
    at: datetime
    over: bool = False


AILMENT = Table("ailment", Format(Ailment), 24 * HOUR)
"""``<cluster>/<node>/<fingerprint of its alert>``: Alertmanager repeats one that goes on, before this ends."""

TAKEN = Table("taken", Format(Taken))
"""``<cluster>/<pool>``: what taking a pool over changed at its cloud; the cluster has the same in a ConfigMap."""

NODE_MARK = Table("mark", Format(NodeMark))
"""``<cluster>/<node>``: that it carries our taint, and for whose sake."""

ISOLATED = Table("isolated", Format(Isolations))
"""``<cluster>``: what unexpected errors cost its looks, and what is set apart now."""

QUEUE = Table("queue", Format(QueueHistory), 24 * HOUR)
"""``<cluster>/<queue>``: its last readings."""
