"""Pools that each shape belongs to: of the types that cost least a GPU for it. It goes elsewhere where it must."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from pilotlight.decide.fit.fit import Bin
from pilotlight.decide.offers.selection import Eligible, rank_candidates
from pilotlight.decide.offers.shortage import short_zones
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand, PodShape

PoolNames = frozenset[str]


class Homes:
    """The pools that each shape belongs to, worked out for all of its pods that wait together.

    ``steered`` are pools whose nodes are born closed, ``closed`` the nodes that are. ``able`` tells what a shape may be
    bought.
    """

    def __init__(
        self,
        policy: Policy,
        able: Callable[[PodShape], Eligible],
        steered: Collection[str],
        closed: Collection[str],
        pending: Sequence[PodDemand] = (),
    ) -> None:
        self._policy, self._ask, self._steered, self.closed = policy, able, steered, closed
        self._together = Counter(pod.shape.key for pod in pending)
        self._eligible: dict[str, Eligible] = {}
        self._known: dict[str, PoolNames | None] = {}

    def pools_for(self, shape: PodShape) -> PoolNames | None:
        """The pools whose types are the cheapest a GPU for a shape; None: any it may use.

        They are those of the type that one such pod would be bought, and what costs no more: of the same model, or not
        to be had now. A type that is sold in several zones and short in all of them counts: it is back soon.
        Where nothing can be bought for it, it belongs wherever it fits.
        """
        if shape.key not in self._known:
            self._known[shape.key] = self._found(shape)
        return self._known[shape.key]

    def stray_in(self, shape: PodShape) -> set[str]:
        """The pools that a shape may use and does not belong to."""
        homes = self.pools_for(shape)
        if homes is None:
            return set()
        able = self._able(shape)
        pools = {c.offering.pool for c in (*able.candidates, *(c for c, _, _ in able.held))}
        return pools - homes

    def welcome(self, bin_: Bin, homes: PoolNames | None) -> bool:
        """True where a pod may be planned on a node: of its homes, or open to all."""
        if homes is None or bin_.pool in homes:
            return True
        return bin_.where not in self.closed if bin_.kind == "ready" else bin_.pool not in self._steered

    def _able(self, shape: PodShape) -> Eligible:
        if shape.key not in self._eligible:
            self._eligible[shape.key] = self._ask(shape)
        return self._eligible[shape.key]

    def _found(self, shape: PodShape) -> PoolNames | None:
        able = self._able(shape)
        order = rank_candidates(able, shape, self._together[shape.key] or 1, self._policy)
        first = order[0][1] if order else None
        short = short_zones(able) if able.held else ()
        cheapest = min(short, key=lambda c: (c.rate, c.offering.name), default=first)
        if first is None or (cheapest is not None and cheapest.rate < first.rate):
            first = cheapest
        if first is None:
            return None
        most, model = first.rate, first.offering.gpu_model
        own = {c.offering.pool for c in able.candidates if c.offering.gpu_model == model and c.rate <= most}
        return frozenset(own | {c.offering.pool for c, _, _ in able.held if c.rate <= most})


def acting_pools(view: ClusterView, policy: Policy, brakes: Brakes) -> set[str]:
    """The pools whose nodes may be kept closed: in ``act``, not paused, as one that another scales is too.

    None where nobody would open them again in our place.
    """
    if ALL in brakes.paused or not view.watched:
        return set()
    modes = {name: brakes.modes.get(name) or rules.acts_as or "act" for name, rules in policy.pools.items()}
    return {name for name, mode in modes.items() if mode == "act"} - set(brakes.paused)
