"""Pools that each shape belongs to, of the types that cost least a GPU for it; waits for them where the cloud is short.

A shape goes elsewhere where it must. A shortage is expected to last as long again as it has lasted, from the next try
on. So one that goes on comes to where the next type is cheaper than more waiting, and waiting is never worth more than
the dollars it was to save: by the one price.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from pilotlight.decide.demand.run_lengths import expected_run_s
from pilotlight.decide.fit.fit import Bin
from pilotlight.decide.money.economics import works_s
from pilotlight.decide.offers.selection import Candidate, Eligible, rank_candidates
from pilotlight.decide.place.purchase import Group
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand, PodShape
from pilotlight.units import HOUR, Seconds, Usd, cents, human, per_hour

if TYPE_CHECKING:
    from pilotlight.decide.place.provision import Provisioner

PoolNames = frozenset[str]

ASKED_LATELY = timedelta(seconds=30)
"""A zone that was refused within this is not asked again before its rest is over."""


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

    def welcome(self, bin_: Bin, homes: PoolNames | None) -> bool:
        """True where a pod may be planned on a node: of its homes, or open to all."""
        if homes is None or bin_.pool in homes:
            return True
        return bin_.where not in self.closed if bin_.kind == "ready" else bin_.pool not in self._steered

    def able(self, shape: PodShape) -> Eligible:
        """Offerings that a shape may be bought, asked for once."""
        if shape.key not in self._eligible:
            self._eligible[shape.key] = self._ask(shape)
        return self._eligible[shape.key]

    def _found(self, shape: PodShape) -> PoolNames | None:
        able = self.able(shape)
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


def better_waited_for(
    next_: Candidate,
    short: Iterable[Candidate],
    shape: PodShape,
    count: int,
    run_s: Seconds,
    policy: Policy,
    memory: Memory,
    now: datetime,
) -> str:
    """Why pods of a shape wait for one of ``short`` rather than are bought the next type, or empty.

    ``count`` of them are expected to run ``run_s``. A type of the same $/GPU is bought at once, as is what a class
    falls back to from spot: its owner said so. Where waiting has no price the next type is bought.
    """
    wait = policy.wait(shape.workload_class) / (shape.gang.size if shape.gang else 1)
    for candidate in short if wait else ():
        resting = memory.live_backoff(candidate.offering.name, now)
        if resting is None or resting.short_since is None or not _nexts(candidate, next_):
            continue
        to_the_next_try, so_far = resting.until - now, now - resting.short_since
        longer_s = (to_the_next_try + so_far).total_seconds() + works_s(candidate.offering) - works_s(next_.offering)
        waited, more = per_hour(wait, longer_s), _usd(next_, count, run_s) - _usd(candidate, count, run_s)
        if waited < more:
            return (
                f"{candidate.offering.name} is short: waiting {human(max(0.0, longer_s))} longer for it costs "
                f"{cents(waited)} at {cents(wait)}/h, {next_.offering.name} {cents(more)} more for "
                f"{run_s / HOUR:.1f} h of running"
            )
    return ""


def _nexts(candidate: Candidate, next_: Candidate) -> bool:
    """True where another type costs more a GPU, and is no fall-back."""
    return candidate.offering.capacity_type == next_.offering.capacity_type and candidate.rate < next_.rate


def _usd(candidate: Candidate, count: int, run_s: Seconds) -> Usd:
    """Dollars of one of ``count`` pods that share nodes of a candidate, for its run and until it works."""
    offering, runs_s = candidate.offering, run_s / candidate.throughput
    return per_hour(offering.usd_per_hour, works_s(offering) + runs_s) / Decimal(min(count, candidate.per_node))


def short_zones(eligible_: Eligible) -> list[Candidate]:
    """Candidates that rest for want of capacity in their zone, of pools that are sold in several."""
    resting = [c for c, code, _ in eligible_.held if code == "backoff"]
    if not resting:
        return []
    zones = Counter(c.offering.pool for c in (*eligible_.candidates, *(c for c, _, _ in eligible_.held)))
    return [c for c in resting if zones[c.offering.pool] > 1]


def wait_for_short_type(run: "Provisioner", candidate: Candidate, group: Group) -> str:
    """Reason why pods wait for what the cloud is short of rather than get a candidate; empty where they get it."""
    if group.shape.due or not any(b.short_since is not None and b.until > run.now for b in run.memory.backoffs):
        return ""
    shape = group.shape
    held = run.able(run.offerings, shape).held
    short = [c for c, code, _ in held if code == "backoff" and _has_room(run, c, shape)]
    run_s = expected_run_s(run.memory, shape, run.now)
    return better_waited_for(candidate, short, shape, len(group.pods), run_s, run.policy, run.memory, run.now)


def zones_to_ask_again(run: "Provisioner", group: Group, able: Eligible) -> tuple[Candidate, ...]:
    """A pod's own zones that rest, before it goes to a dearer type: to ask them again costs nothing."""
    homes = run.homes_of(group.shape) if run.only is None else None
    if homes is None or any(c.offering.pool in homes for c in able.candidates):
        return ()
    before = run.now - ASKED_LATELY
    asked = {b.offering: b.at for b in run.memory.backoffs if b.at is not None}
    short = [c for c in short_zones(able) if c.offering.pool in homes]
    again = tuple(c for c in short if (at := asked.get(c.offering.name)) is not None and at <= before)
    return () if not again or wait_for_own_zone(run, group, homes) else again


def wait_for_own_zone(run: "Provisioner", group: Group, homes: PoolNames | None) -> str:
    """Reason why pods whose own pools are short in every zone are kept off dearer nodes; empty where they are not."""
    if homes is None or not group.pods:
        return ""
    able = run.able(run.offerings, group.shape)
    short = [c for c in short_zones(able) if c.offering.pool in homes]
    known = (*able.candidates, *(c for c, _, _ in able.held))
    if not short or any(c.offering.pool in homes for c in able.candidates):
        return ""
    away = [c for c in known if c.offering.pool not in homes]
    if not away:
        return ""
    next_ = min(away, key=lambda c: (c.rate, c.offering.name))
    run_s = expected_run_s(run.memory, group.shape, run.now)
    count = len(group.pods)
    return better_waited_for(next_, short, group.shape, count, run_s, run.policy, run.memory, run.now)


def _has_room(run: "Provisioner", candidate: Candidate, shape: PodShape) -> bool:
    """True where caps and budgets leave a node of a candidate."""
    offering = candidate.offering
    return run.headroom.room(offering, run.headroom.terms(offering, shape))[0] > 0
