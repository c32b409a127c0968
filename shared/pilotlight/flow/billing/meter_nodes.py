"""The live meter in the state: every look counts what nodes cost since the look before, each microsecond once.

A day's nodes lie in parts (``metering``), which are written only when a look brings something new of them: what goes on
as it was is counted from each node's own mark up to the last look (``metered``). Every part is changed by
compare-and-set, so the same look twice, two looks at once or a crash between two parts count nothing twice.

A day that is over is closed: kept by node where that fits one record, else without nodes, in as many as it takes.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeVar
from zlib import crc32

import msgspec
from msgspec.structs import replace

from pilotlight.decide.money.holds import Lit, lit_instances
from pilotlight.decide.money.metering import (
    MeterLook,
    count_day,
    cuts,
    day_start,
    metered_node,
    news,
    stopped_node,
    unallocated_node,
    upto,
    without_projects,
)
from pilotlight.decide.money.node_hours import lines, sum_lines
from pilotlight.errors import Conflict
from pilotlight.facts.capacity import Offering
from pilotlight.facts.limits.isolated_objects import NAMELESS
from pilotlight.facts.money.bill import Life, MeterDay, MeteredNode, MeterPart
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.deps import Deps, HasBudgets
from pilotlight.flow.observe import instance_lifetimes
from pilotlight.flow.observe.known_instances import without_stopped
from pilotlight.ports.state import ABSENT, LARGEST, State
from pilotlight.state_schema.billing_records import METER, METERED, METERING, CountFrom
from pilotlight.state_schema.parted import FULL, way
from pilotlight.state_schema.table import Entry

ROOTS = 16
"""A day's nodes begin in so many parts; where one is full, new nodes go below it."""

CATCH_UP = 35
"""Days that are gone back to at most: for a meter that stood still, and for nodes whose price was not known."""

DAY = timedelta(days=1)

Nodes = Mapping[str, MeteredNode]
T = TypeVar("T")


LOOKS, LOOKING_S = 3, 30
"""A look that took longer is taken anew, so often at most: what others saw meanwhile may be younger than its begin."""

MOST_UNPRICED = 100
"""So many nodes without a price are named where a day's lines by node do not fit one record."""


def count(deps: Deps) -> MeterDay:
    """Look, and count up to now. Today's lines."""
    known = METERED.get(deps.state, deps.name)
    from_, version = (known.value, known.version) if known else (None, ABSENT)
    for _ in range(LOOKS):
        took = deps.clock.stopwatch()
        look = _look(deps, from_)
        if took() <= LOOKING_S:
            break
    today = look.at.date()
    first = max(from_.day if from_ else today, today - CATCH_UP * DAY)
    zones = tuple(sorted({budget.timezone for budget in deps.policy.budgets}))
    nodes: Nodes = {}
    goes_on = today
    for day in (first + n * DAY for n in range((today - first).days + 1)):
        nodes = _count_day(deps, _Day(day, nodes, look, cuts(day, zones)))
        if day < today:
            close_day(deps.state, deps.name, _summed(day, nodes, day_start(day + DAY), look.apart))
        if look.apart or _waits_for_a_price(deps, nodes):
            goes_on = min(goes_on, day)

    def counted_to(was: CountFrom | None) -> CountFrom:
        seen = max(was.seen, look.at) if was and was.seen else look.at
        lives_from = (was.lives_from or was.seen) if was else None
        return CountFrom(day=goes_on, seen=seen, zones=zones, lives_from=lives_from if look.apart else seen)

    try:
        METERED.put(deps.state, deps.name, counted_to(from_), if_version=version)
    except Conflict:
        METERED.change(deps.state, deps.name, counted_to)
    return _summed(today, nodes, look.at, look.apart)


def days(
    state: State,
    cluster: str,
    first: date,
    last: date,
    apart: frozenset[str] = frozenset(),
    counted: MeterDay | None = None,
) -> list[MeterDay]:
    """The days from the first to the last that were metered, today's as far as it is counted; without nodes ``apart``,
    which are named as those without a price are. A day that was just ``counted`` is not read again."""
    found = read_closed(state, cluster, first, last) | ({counted.day: counted} if counted else {})
    lacks = any(first + n * DAY not in found for n in range((last - first).days + 1))
    from_ = _count_from(state, cluster) if lacks else None
    day = max(first, from_.day) if from_ else last + DAY
    while from_ is not None and day <= last:
        if day not in found:
            cut_at = cuts(day, from_.zones)
            seen = from_.seen or day_start(day)
            parts = [upto(e.value, seen, cut_at, apart) for e in _parts(state, cluster, day).values()]
            if parts:
                nodes = {instance: node for part in parts for instance, node in part.nodes.items()}
                found[day] = _summed(day, nodes, max(part.seen for part in parts), apart)
        day += DAY
    return [one for _, one in sorted(found.items())]


def counted_from(state: State, cluster: str) -> date:
    """The day from which on counting goes on: those before it are closed. The first of all where none was counted."""
    from_ = _count_from(state, cluster)
    return from_.day if from_ else date.min


def nodes(state: State, cluster: str, day: date) -> dict[str, MeteredNode]:
    """A day's nodes by instance, each as the last look that brought something new of it left it."""
    parts = _parts(state, cluster, day).values()
    return {instance: node for part in parts for instance, node in part.value.nodes.items()}


def _counts(deps: Deps, life: Life) -> bool:
    """True where a node that has gone is counted at this look; else it is counted once it can be."""
    return deps.set_apart("node").isdisjoint((life.instance, life.node))


def _look(deps: Deps, from_: CountFrom | None) -> MeterLook:
    now, seen = deps.state.now(), from_.seen if from_ else None
    lives = instance_lifetimes.ended_since(deps, (from_.lives_from if from_ else None) or seen)
    nodes, silent = _lit(deps)
    offerings = {offering.pool: offering for offering in deps.offerings}
    apart = _degrees(deps) if deps.apart else {}
    known = [one for one in nodes if apart.get(one.node.name if one.node else one.instance, 0) < NAMELESS]
    found = {one.instance: _as_seen(one, offerings.get(one.pool), apart) for one in known}
    judged = {one.instance: one.node for one in known if one.node and one.node.name not in apart}
    return MeterLook(
        at=now,
        lit=found,
        nodes=judged,
        last=seen,
        over={life.instance: stopped_node(life, offerings.get(life.pool)) for life in lives if _counts(deps, life)},
        seen_at={life.instance: life.seen_at for life in lives if life.seen_at is not None},
        offerings=offerings,
        apart=unmetered_nodes(deps).union(life.instance for life in lives if not _counts(deps, life)),
        held=budget_holds.prices_since(deps, _untold_since(from_)),
        budgets=bool(deps.policy.budgets),
        silent=silent,
    )


def _lit(deps: Deps) -> tuple[list[Lit], frozenset[str]]:
    """Instances that are paid for, and pools not read whole. Pools are read first: one that joins meanwhile is in
    both, never in neither."""
    pools, view = deps.pools.describe(), deps.observe()
    if any(pool.stops or pool.stopped for pool in pools):
        view, _ = without_stopped(view, pools)
    # A node object is younger than its instance, which is paid for from its launch.
    launched = {booting.instance: booting.requested_at for pool in pools for booting in pool.booting}
    lit = [
        one._replace(since=min(one.since, launched[one.instance])) if one.instance in launched else one
        for one in lit_instances(view.nodes, pools)
    ]
    silent = (pool.name for pool in pools if pool.hidden or (pool.rules is not None and pool.rules.silent))
    return lit, frozenset(silent)


def _untold_since(from_: CountFrom | None) -> datetime | None:
    """Since when prices of holds may not be known: a day that is not counted whole may have nodes never told of."""
    if from_ is None or from_.seen is None:
        return None
    return from_.seen if from_.day >= from_.seen.date() else day_start(from_.day)


def unmetered_nodes(deps: HasBudgets) -> frozenset[str]:
    """The nodes, by name, that are not counted at this look: each is counted on from its own mark once it can be."""
    apart = _degrees(deps) if isinstance(deps, Deps) and deps.apart else {}
    return frozenset(name for name, degree in apart.items() if degree >= NAMELESS)


def _degrees(deps: Deps) -> dict[str, int]:
    """Degrees to which nodes are set apart, by the names that the look has for them."""
    from pilotlight.decide.limits.set_apart import stand_in

    nodes = {one.name: one.degree for one in deps.apart if one.kind == "node"}
    return {**nodes, **{stand_in(name): degree for name, degree in nodes.items()}}


def _as_seen(one: Lit, offering: Offering | None, apart: Mapping[str, int]) -> MeteredNode:
    """A node as it is at the look; one that is set apart has its price, and nobody holds it."""
    if one.node is None or one.node.name not in apart:
        return metered_node(one, offering)
    return unallocated_node(one, one.node.name, offering)


class _Day(NamedTuple):
    """One day of the count: the look, and ``before``, the nodes as the day before left them."""

    day: date
    before: Nodes
    look: MeterLook
    cut_at: tuple[datetime, ...]

    def instances(self) -> Iterable[str]:
        """All that may be new on the day."""
        return {*self.before, *self.look.lit, *self.look.over}

    def node(self, instance: str) -> MeteredNode:
        """One that may be new on the day."""
        return self.before.get(instance) or self.look.lit.get(instance) or self.look.over[instance]

    def count_part(self, was: MeterPart, new: Collection[str]) -> MeterPart:
        """A part with its own nodes and those that it takes in."""
        mine = [*was.nodes, *new]
        lit, over = _only(self.look.lit, mine), _only(self.look.over, mine)
        look = replace(self.look, lit=lit, over=over, nodes=_only(self.look.nodes, mine))
        return count_day(was, _only(self.before, mine), look, self.cut_at)


def _only(nodes: Mapping[str, T], instances: Iterable[str]) -> dict[str, T]:
    return {instance: nodes[instance] for instance in instances if instance in nodes}


def _count_day(deps: Deps, of: _Day) -> dict[str, MeteredNode]:
    """Count all parts of a day; its nodes after that."""
    parts = _parts(deps.state, deps.name, of.day)
    home = {instance: part for part, entry in parts.items() for instance in entry.value.nodes}
    todo: dict[str, set[str]] = {part: set() for part in parts}
    for instance in of.instances():
        todo.setdefault(home.get(instance) or next(iter(_way(instance))), set()).add(instance)
    nodes: dict[str, MeteredNode] = {}
    heap = list(todo)
    heapify(heap)
    while heap:  # In order, so that a part comes before those below it.
        part = heappop(heap)
        done, left = _count_part(deps, part, parts.get(part), of, todo.pop(part))
        nodes |= done.nodes
        for instance in left:
            below = next(one for one in _way(instance) if len(one) > len(part))
            if below not in todo:
                heappush(heap, below)
            todo.setdefault(below, set()).add(instance)
    return nodes


def _count_part(
    deps: Deps, part: str, entry: Entry[MeterPart] | None, of: _Day, instances: set[str]
) -> tuple[MeterPart, set[str]]:
    """Count one part; it, and the instances for which it has no room.

    Whoever was faster makes it count again from what that one wrote.
    """
    name = f"{deps.name}/{of.day}/{part}"
    while True:
        was = entry.value if entry else MeterPart(day=of.day, seen=day_start(of.day))
        new, left = _room(was, instances, of)
        now = of.count_part(was, new)
        if not news(was, now) and bool(left) <= was.full:
            return now, left
        now = _fitted(replace(now, full=was.full or bool(left)))
        try:
            METERING.put(deps.state, name, now, if_version=entry.version if entry else ABSENT)
            return now, left
        except Conflict:
            entry = METERING.get(deps.state, name)


def _room(was: MeterPart, instances: set[str], of: _Day) -> tuple[list[str], set[str]]:
    """Which instances a part does not have yet and takes in, and which it cannot."""
    new = sorted(instances - was.nodes.keys())
    if was.full:
        return [], set(new)
    size = len(METERING.format.write(was)) if new else 0
    taken = 0
    while taken < len(new) and size < FULL:
        size += len(msgspec.json.encode(of.node(new[taken])))
        taken += 1
    return new[:taken], set(new[taken:])


def _fitted(part: MeterPart) -> MeterPart:
    """A part whose nodes were held by more projects than fit is kept by team."""
    if len(METERING.format.write(part)) <= LARGEST:
        return part
    nodes = {instance: without_projects(node) for instance, node in part.nodes.items()}
    return replace(part, nodes=nodes)


def _way(instance: str) -> Iterable[str]:
    """The parts in which an instance may lie, from the first downwards."""
    return way(instance, f"{crc32(instance.encode()) % ROOTS:02d}")


def _count_from(state: State, cluster: str) -> CountFrom | None:
    found = METERED.get(state, cluster)
    return found.value if found else None


def _parts(state: State, cluster: str, day: date) -> dict[str, Entry[MeterPart]]:
    within = f"{cluster}/{day}/"
    return {entry.name.removeprefix(within): entry for entry in METERING.scan(state, within)}


def _waits_for_a_price(deps: Deps, nodes: Nodes) -> bool:
    """True where a day has nodes of the policy's pools without a price: it is counted once they have one."""
    return any(n.usd_per_hour is None and n.stretches and n.pool in deps.policy.pools for n in nodes.values())


def _summed(day: date, nodes: Nodes, until: datetime, apart: frozenset[str] = frozenset()) -> MeterDay:
    """A day's lines. Nodes that are set apart have none yet, and are named as those without a price are."""
    waits = {instance for instance, node in nodes.items() if apart and not apart.isdisjoint((instance, node.name))}
    found, unpriced = lines(node for instance, node in nodes.items() if instance not in waits)
    unpriced = tuple(sorted({*unpriced, *(nodes[instance].name for instance in waits)}))
    return MeterDay(day=day, until=until, lines=found, unpriced=unpriced)


def close_day(state: State, cluster: str, day: MeterDay) -> None:
    """Write a day that is over, where it is not written yet or what it cost became known better."""
    if len(METER.table.format.write(day)) > LARGEST:
        day = replace(day, lines=sum_lines(day.lines, node=""), unpriced=day.unpriced[:MOST_UNPRICED])
    METER.write(state, f"{cluster}/{day.day}", day)


def read_closed(state: State, cluster: str, first: date, last: date) -> dict[date, MeterDay]:
    """The days from the first to the last that are closed."""
    found = (entry.value for entry in METER.scan(state, f"{cluster}/", after=f"{cluster}/{first - DAY}/~"))
    return {day.day: day for day in found if day.day <= last}
