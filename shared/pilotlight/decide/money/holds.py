"""The life of holds: which node each belongs to, how it moves on while the node is lit, and what it leaves behind."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.money.budget_limits import (
    OLDEST,
    OWN_DEADLINE,
    amount,
    class_of,
    covered_until,
    limit,
    longest_run,
    stops,
    terms,
    used_amount,
)
from pilotlight.decide.money.economics import counted_stop_s, stop_s
from pilotlight.decide.money.gpu_shares import as_first_seen
from pilotlight.decide.money.node_end import AHEAD_S, ending, stop_within
from pilotlight.facts.capacity import BoundPod, Node, Offering
from pilotlight.facts.money.budgets import Hold, Meter, Priced
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import Policy
from pilotlight.units import Seconds, UsdPerHour

TICK = timedelta(seconds=60)
"""A reconcile looks this often: a pod can bind so long before anyone sees it."""

SKEW = timedelta(minutes=5)
"""The cloud's clock may be so far behind ours. It can be long: every older instance has a hold of its own."""

NAMED = 5
"""A report names so many nodes."""

YOUNG = timedelta(seconds=60)
"""One lease: a purchase younger than that may still be under way in other hands."""

NONE: AbstractSet[str] = frozenset()
OF_WORKLOAD = "kueue-"
"""What the decision of a hold begins with that is for a queued Workload, whose nodes another makes."""


def of_workload(hold: Hold) -> bool:
    """True for a hold that is a Workload's still. Once a node of its pool is seen it is that node's, as any other."""
    return hold.decision.startswith(OF_WORKLOAD) and not hold.instance


def workload_ends(hold: Hold) -> datetime | None:
    """When a Workload's hold ends at the latest: after its longest run, where it names one itself."""
    if hold.terms.run_source != OWN_DEADLINE:
        return None
    return hold.since + timedelta(seconds=hold.terms.boot_s + hold.terms.run_s)


class Lit(NamedTuple):
    """An instance that is paid for; ``node`` is None until it registers. ``earlier`` is where it costs from, before
    ``since`` by the clock that deadlines go by."""

    instance: str
    pool: str
    since: datetime
    node: Node | None
    earlier: datetime | None = None

    @property
    def pods(self) -> tuple[BoundPod, ...]:
        """Pods that keep it lit."""
        return self.node.gpu_pods if self.node is not None else ()


class Matching(NamedTuple):
    """Holds with their instances (None: on its way), instances nobody holds for, and holds whose node is gone."""

    live: tuple[tuple[Hold, Lit | None], ...]
    strange: tuple[Lit, ...]
    over: tuple[Hold, ...]


def lit_instances(nodes: Iterable[Node], pools: Iterable[PoolState]) -> tuple[Lit, ...]:
    """Every instance that is paid for, as far as the cluster and the cloud name it."""
    found = {n.instance or n.name: Lit(n.instance or n.name, n.pool, n.created_at, n) for n in nodes}
    for pool in pools:
        for booting in (one for one in pool.booting if not one.unmade):
            own = Lit(booting.instance, pool.name, booting.requested_at, None, booting.billed_from)
            found.setdefault(booting.instance, own)
    return tuple(found.values())


def match(
    holds: Sequence[Hold],
    lit_: Sequence[Lit],
    pools: Sequence[PoolState],
    now: datetime,
    unresolved: AbstractSet[str] = NONE,
    unsold: AbstractSet[str] = NONE,
) -> Matching:
    """Which hold is whose. A hold that is bought and has no instance yet takes the oldest of its pool that is free.

    Holds of ``unresolved`` decisions stay: a call of theirs may still land. ``unsold`` ones (by id) are over: no
    instance came of their call, or ever will.
    """
    by_instance = {one.instance: one for one in lit_}
    open_ = [h for h in holds if h.ended_at is None]
    void = [h for h in open_ if _is_void(h, unsold)]
    going = _one_an_instance([h for h in open_ if not _is_void(h, unsold)])
    paired, waiting, strange = _pair(going, lit_, now)
    missing = [h for h in going if h.instance and h.instance not in by_instance]
    coming, gone = _coming([*waiting, *missing], lit_, pools, now, unresolved)
    live = [(h, by_instance[h.instance]) for h in going if h.instance in by_instance]
    over = (*void, *gone, *(h for h in holds if h.ended_at is not None))
    return Matching((*live, *paired, *((h, None) for h in coming)), strange, over)


def _is_void(hold: Hold, unsold: AbstractSet[str]) -> bool:
    return hold.id in unsold and not hold.instance


def _pair(
    going: Sequence[Hold], lit_: Sequence[Lit], now: datetime
) -> tuple[list[tuple[Hold, Lit]], list[Hold], tuple[Lit, ...]]:
    """Each instance that has no hold with the oldest of its pool that is free; holds and instances that are left."""
    taken = {h.instance for h in going}
    # Nodes that were bought are their purchase's before they are a Workload's.
    waiting = sorted((h for h in going if not h.instance), key=lambda h: (of_workload(h), h.since, h.id))
    paired: list[tuple[Hold, Lit]] = []
    strange: list[Lit] = []
    for one in sorted((o for o in lit_ if o.instance not in taken), key=lambda o: (o.since, o.instance)):
        hold = next((h for h in waiting if h.terms.pool == one.pool and h.since <= one.since + SKEW), None)
        if hold is None:
            strange.append(one)
        else:
            waiting.remove(hold)
            paired.append((_matched(hold, one, now), one))
    return paired, waiting, tuple(strange)


def _matched(hold: Hold, one: Lit, now: datetime) -> Hold:
    """The hold as its instance's. Where that is older by its cloud's clock all of it begins, and ends, as much earlier:
    it holds no more than was granted. One that its cloud made long after it was asked for costs from then on."""
    early = max(hold.since - one.since, timedelta())
    boot_s = hold.terms.boot_s if one.node is not None else 0.0  # A node registers only after it.
    late = max(min((one.earlier or one.since) - SKEW - timedelta(seconds=boot_s), now) - hold.since, timedelta())
    return replace(
        hold,
        instance=one.instance,
        matched_at=now,
        since=hold.since - early + late,
        binds_until=hold.binds_until - early,
        until=hold.until - early,
    )


def _one_an_instance(going: Sequence[Hold]) -> list[Hold]:
    """Of two holds that name one instance, as two workers' looks may have it, the later one has none."""
    taken: set[str] = set()
    out: list[Hold] = []
    for hold in sorted(going, key=lambda h: (h.since, h.id)):
        twice = hold.instance in taken
        out.append(replace(hold, instance="", matched_at=None) if twice else hold)
        taken |= {hold.instance} - {""}
    return out


def _coming(
    holds: Iterable[Hold],
    lit_: Iterable[Lit],
    pools: Iterable[PoolState],
    now: datetime,
    unresolved: AbstractSet[str],
) -> tuple[list[Hold], list[Hold]]:
    """Holds whose instance the cloud still owes (it counts more than it names) or may yet get; and the others."""
    sized = {p.name: p.size_beside(lit_) if p.leaves else p.desired for p in pools}
    owed = defaultdict[str, int](int, {p.name: sized[p.name] + (p.ending if p.booting else 0) for p in pools})
    for one in lit_:
        owed[one.pool] -= 1
    coming, gone = list[Hold](), list[Hold]()
    for hold in holds:
        owed[hold.terms.pool] -= not of_workload(hold)
        may_come = not hold.instance and (now < hold.since + YOUNG or hold.decision in unresolved)
        later = hold.matched_at is not None and hold.matched_at >= now  # This look is older than what it judges.
        (coming if may_come or later or owed[hold.terms.pool] >= 0 else gone).append(hold)
    return coming, gone


def adopt_node(
    one: Lit, offering: Offering, policy: Policy, now: datetime, charged: datetime | None = None, lit_for: str = ""
) -> Hold:
    """A hold for a node nobody held for: it was lit before there were budgets, by other hands, or late.

    While it is empty it is held for as what its pool was last ``lit_for``, where that is known: a class, else any. What
    another hold was ``charged`` for it already is left out.
    """
    pod = next(iter(one.pods), None)
    kind = class_of(pod.workload_class if pod else lit_for)
    own = terms(offering, policy, workload_class=kind, team=pod.team if pod else "")
    begun = one.earlier or one.since
    since = max(begun, now - OLDEST, charged or begun)
    return Hold(
        id=f"seen.{one.instance}",
        decision="",
        terms=own,
        since=since,
        binds_until=now,
        until=now,
        instance=one.instance,
        matched_at=now,
    )


def first_seen(hold: Hold, pod: BoundPod) -> tuple[str, str]:
    """Team and class that a pod had when it was first seen on its node; those that it has where it was not."""
    return hold.teams.get(pod.key, pod.team), hold.classes.get(pod.key, pod.workload_class)


def as_bound(hold: Hold, one: Lit | None) -> tuple[Hold, Lit | None]:
    """The hold that knows whose its pods are, and its node with what its pods were when they were first seen."""
    if one is None or one.node is None:
        return hold, one
    owners = {pod.uid: first_seen(hold, pod) for pod in one.pods}
    teams = {pod.key: owners[pod.uid][0] for pod in one.pods}
    classes = {pod.key: owners[pod.uid][1] for pod in one.pods}
    if classes != hold.classes or teams != hold.teams:
        hold = replace(hold, classes=classes, teams=teams)
    return hold, one._replace(node=as_first_seen(one.node, owners))


def commit_pods(hold: Hold, pods: Sequence[BoundPod], policy: Policy) -> Hold:
    """The hold with the longest run of what has bound to its node since, of pods that may not be stopped at a cap.

    One that nobody bought for, and on which all that runs may be stopped, is held for in stretches from then on, no
    longer for a whole run.
    """
    hold = _in_stretches(hold, pods, policy)
    longest: tuple[Seconds, str] = (hold.terms.run_s, hold.terms.run_source)
    for max_run_s, name in dict.fromkeys([(pod.max_run_s, class_of(pod.workload_class)) for pod in pods]):
        if not (hold.terms.stretch_s and stops(name, policy)):
            longest = max(longest, longest_run(max_run_s, name, policy), key=lambda run: run[0])
    if longest[0] == hold.terms.run_s:
        return hold
    own = replace(hold.terms, run_s=longest[0], run_source=longest[1])
    return replace(hold, terms=own)


def _in_stretches(hold: Hold, pods: Sequence[BoundPod], policy: Policy) -> Hold:
    if hold.terms.workload_class or hold.terms.stretch_s or not pods:
        return hold
    kinds = [class_of(pod.workload_class) for pod in pods]
    if not all(kind is not None and stops(kind, policy) for kind in kinds):
        return hold
    own = replace(hold.terms, stretch_s=min(policy.of_class(kind).hold for kind in kinds if kind is not None))
    return replace(hold, terms=own, until=hold.until if hold.stopping else min(hold.until, hold.binds_until))


def promised_hold(hold: Hold) -> Hold:
    """The hold as far as it was promised: what binds in its time may run its longest, where it may not be stopped."""
    until = hold.until if hold.terms.stretch_s else covered_until(hold.terms, hold.binds_until)
    return hold if until <= hold.until else replace(hold, until=until)


def moved_on(hold: Hold, pods: Sequence[BoundPod], policy: Policy, now: datetime, calls_s: Seconds = 0) -> Hold:
    """The hold that covers what binds up to the next look, and one idle timeout more, where it does not yet.

    In stretches it is renewed ahead of its end, and of the ``calls_s`` of nodes that may end with it; it covers what
    was promised to pods that may not be stopped.
    """
    binds_until = hold.binds_until
    if binds_until < now + TICK:
        binds_until = now + TICK + timedelta(seconds=hold.terms.idle_s)
    if not hold.terms.stretch_s:
        until = max(hold.until, covered_until(hold.terms, binds_until))
    else:
        until = hold.until
        if (until - now).total_seconds() < stop_within(hold, pods) + calls_s + AHEAD_S:
            until = max(until, now + timedelta(seconds=hold.terms.stretch_s))
        until = max(until, ending(hold, pods, policy, now).at)
    same = binds_until == hold.binds_until and until == hold.until
    return hold if same else replace(hold, binds_until=binds_until, until=until)


def reprice_hold(hold: Hold, held_to: datetime, price: UsdPerHour) -> Hold:
    """A hold that goes on beyond what was held, at the price of now from there on: what was held keeps the old one."""
    if hold.until <= held_to or price == hold.terms.usd_per_hour:
        return hold
    own = replace(hold.terms, usd_per_hour=price)
    old = Priced(until=held_to, usd_per_hour=hold.terms.usd_per_hour)
    return replace(hold, terms=own, earlier=(*hold.earlier, old)[-MOST_PRICES:], told=False)


MOST_PRICES = 100
"""Of one node's life: a stretch is an hour, and prices are edited by hand or learnt once a day."""


def put_out(hold: Hold, now: datetime, others: Sequence[BoundPod] = (), calls_s: Seconds = 0) -> Hold:
    """The hold of a node that no GPU pod runs on or can bind to: its time until it is put out, or until the ``others``
    leave it, and the calls before its own. A stopped node's stays whole: a budget or a returning pod may keep it."""
    nothing = replace(hold.terms, run_s=0.0, typical_s=0.0)
    leave_s = min(stop_s(others), counted_stop_s(hold.terms)) + TICK.total_seconds() if others else 0
    idle_s = max(hold.terms.idle_s, leave_s)
    until = hold.until if hold.stopping else now + TICK + timedelta(seconds=idle_s + calls_s)
    return replace(hold, terms=nothing, binds_until=until, until=min(hold.until, until))


def spent_up(meter: Meter, own: Decimal, hold: Hold, now: datetime, calls_s: Seconds = 0) -> bool:
    """True where a node that stays to the look after next, and the calls before, costs more than its ``own``."""
    return meter.end is not None and own < used_amount(meter, hold, now + 2 * TICK + timedelta(seconds=calls_s))


class Short(NamedTuple):
    """A node whose hold was not moved on: why, and how much of what runs already is not covered."""

    node: str
    why: str
    beyond: Decimal = Decimal(0)


class Away(NamedTuple):
    """Pods that leave a node for want of dollars, and the refusal."""

    pods: tuple[BoundPod, ...]
    why: str


def report(meter: Meter, total: Decimal, refused: Sequence[Short]) -> str:
    """Report of a meter for people: nodes (by name) that cannot be held for, and how far it may be passed."""
    beyond = sum((one.beyond for one in refused), max(Decimal(0), total - meter.limit))
    if refused:
        names = ", ".join(one.node for one in refused[:NAMED]) + (", ..." if len(refused) > NAMED else "")
        said = [refused[0].why, f"nothing new binds to {names} until there is room"]
    elif beyond > 0:
        said = [f"{amount(meter, total)} of {limit(meter)} are held or spent"]
    else:
        return ""
    if beyond > 0:
        said.append(f"what runs already may go {amount(meter, beyond)} beyond")
    return "; ".join(said)


def frozen_nodes(nodes: Sequence[Node], frozen: Mapping[str, bool]) -> tuple[Node, ...]:
    """The nodes as they will be once those that are frozen are cordoned, and those thawed are not. By instance."""
    return tuple(
        n if (cold := frozen.get(n.instance or n.name)) is None else replace(n, schedulable=not cold) for n in nodes
    )
