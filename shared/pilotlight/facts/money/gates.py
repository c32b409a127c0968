"""NodePools of Karpenter whose limit of GPUs is kept by budgets: what is read of one and of the claims that it made."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

import msgspec

from pilotlight.facts.workload import NVIDIA
from pilotlight.units import Usd

GATE = "karpenter:"
"""What a pool's ``cluster_pool`` begins with that is a NodePool; its name follows."""
LIMITED = NVIDIA
"""The key of a NodePool's limits that is kept."""


class GateClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that Karpenter asked its cloud for."""

    name: str  # Of the NodeClaim.
    gpus: int | None = None  # Of its capacity; None until it is launched.
    type: str = ""  # Its instance type; empty until it is launched.
    node: str = ""  # Its node's name; empty until that registers.
    going: bool = False  # It is being deleted.
    ends_at: datetime | None = None  # When Karpenter lets it expire; None: never.


class Surge(NamedTuple):
    """Bounds on what is replaced at once for one reason."""

    most: int
    percent: int

    def at_once(self, nodes: int) -> int:
        """Of so many nodes, each of which is replaced once. Karpenter takes the share, rounded up, of all that there
        are: those that drain too, and what replaced them. So it grows while old ones drain."""
        share = nodes if self.percent >= 100 else -(-self.percent * nodes // (100 - self.percent))
        return min(nodes, self.most, share)


class GateState(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool and its claims, as they were read."""

    nodepool: str  # Its name.
    version: str = ""  # Version that was read: writes are over it.
    limit: int | None = None  # GPUs that it may have now; None: as many as it likes.
    written: str = ""  # The same as it is written.
    cap: int | None = None  # GPUs that its owner lets it have; None: as many as it likes.
    before: str | None = None  # Limit from before ours, as it was written; "" for none, None where ours never stood.
    given: str = ""  # When its limit was handed back to its owner; empty: it was not.
    wrote: int | None = None  # Limit that was written last by us.
    managers: tuple[str, ...] = ()  # Others that own its limit, by their field managers' names.
    types: tuple[str, ...] = ()  # Instance types that it names; none: it names none.
    capacity_types: tuple[str, ...] = ()  # Capacity types that it names; none: it names none.
    static: bool = False  # It keeps a fixed count of nodes.
    weight: int = 1  # Its weight among NodePools.
    surges: tuple[Surge, ...] = ()  # For each reason the nodes that it may replace at once, each beside its old one.
    claims: tuple[GateClaim, ...] = ()  # What it asked for.
    unread: str = ""  # What of it cannot be read.

    def surge(self, nodes: int) -> int:
        """So many of its nodes may be replaced at once."""
        return max((each.at_once(nodes) for each in self.surges), default=0)


class GateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A gated pool's limit: as it stands, as budgets would have it, and why."""

    pool: str  # The policy's pool.
    nodepool: str  # Karpenter's name of it.
    now: str = ""  # Limit of GPUs as it is written; empty: none.
    limit: int | None = None  # GPUs that budgets have room for; None: no limit is set.
    usd_a_node: Usd = Decimal(0)  # Dollars that a further node is held for.
    why: str  # What it comes of, or why it is not set.
