"""Where pods belong: on the types that cost least a GPU for them. The rest of the nodes are closed to them."""

from collections.abc import Callable, Collection
from decimal import Decimal

from pilotlight.decide.capacity.planned_nodes import Bin
from pilotlight.decide.capacity.selection import Candidate, Eligible, ranked
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodShape

MOST_LOST = 2
"""A pod for which others took the room so often is bought for."""

Pools = frozenset[str]


class Homes:
    """The pools that each shape belongs to. ``steered`` are pools whose nodes may be closed, ``closed`` the nodes that
    are. ``able`` tells what a shape may be bought.
    """

    def __init__(
        self,
        policy: Policy,
        able: Callable[[PodShape], Eligible],
        steered: Collection[str] = (),
        closed: Collection[str] = (),
    ) -> None:
        self._policy, self._able, self._steered, self.closed = policy, able, steered, closed
        self._known: dict[str, Pools | None] = {}

    def of(self, shape: PodShape) -> Pools | None:
        """The pools whose types are the cheapest a GPU for a shape; None: any it may use.

        They are those of the type that one such pod would be bought, and what costs no more: of the same model, or not
        to be had now. Where nothing can be bought for it, it belongs wherever it fits.
        """
        if not self._steered:
            return None
        if shape.key not in self._known:
            self._known[shape.key] = self._found(shape)
        return self._known[shape.key]

    def stray_in(self, shape: PodShape) -> set[str]:
        """The pools that a shape may use and does not belong to."""
        homes = self.of(shape)
        if homes is None:
            return set()
        able = self._able(shape)
        pools = {c.offering.pool for c in (*able.candidates, *(c for c, _, _ in able.held))}
        return pools - homes

    def welcome(self, bin_: Bin, homes: Pools | None, *, lost: bool) -> bool:
        """Whether a pod may be planned on a node: of its homes, or open to all.

        Once it has ``lost`` too often it is not sent to a closed one again.
        """
        if homes is None:
            return True
        if bin_.kind == "ready":
            return bin_.where not in self.closed or (bin_.pool in homes and not lost)
        return bin_.pool in homes or bin_.pool not in self._steered

    def shuts(self, bin_: Bin) -> bool:
        """Whether a node is closed now."""
        return bin_.kind == "ready" and bin_.where in self.closed

    def strange(self, shape: PodShape, pool: str) -> bool:
        """Whether a shape belongs elsewhere than in a pool."""
        homes = self.of(shape)
        return homes is not None and pool not in homes

    def _found(self, shape: PodShape) -> Pools | None:
        able = self._able(shape)
        order = ranked(able, shape, 1, self._policy)
        if not order:
            return None
        first = order[0][1]
        most, model = _rate(first), first.offering.gpu_model
        own = {c.offering.pool for c in able.candidates if c.offering.gpu_model == model and _rate(c) <= most}
        return frozenset(own | {c.offering.pool for c, _, _ in able.held if _rate(c) <= most})


def _rate(candidate: Candidate) -> Decimal:
    """Dollars an hour of one GPU's work."""
    offering = candidate.offering
    return offering.usd_per_hour / max(1, offering.gpus) / Decimal(candidate.throughput)
