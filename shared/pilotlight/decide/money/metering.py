"""The live meter: whose every microsecond of a node's paid time was, one UTC day at a time.

A node is paid from its launch until it stops, and then to the end of its minimum or increment. Between two looks its
time belongs to who held its GPUs at the look before. Time is split in whole microseconds, so nothing is lost or
counted twice, and every node carries its own mark up to where it is counted: counting again adds nothing. A price
that changes counts from a moment on: time is cut there, and what was counted keeps the price of its time.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta

import msgspec
from msgspec import field
from msgspec.structs import replace

from pilotlight.decide.money.gpu_shares import as_first_seen, holdings
from pilotlight.decide.money.holds import Lit
from pilotlight.decide.money.node_hours import at_held, change_price, node_times, prices_after
from pilotlight.decide.money.node_tally import NodeTally, paid_until
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.money.bill import Life, LineKind, MeteredNode, MeterPart, Stretch
from pilotlight.facts.money.budgets import HeldPrice
from pilotlight.units import EPOCH


class MeterLook(msgspec.Struct, frozen=True):
    """Nodes seen at a moment, by instance: those that are lit, and those that are known to have stopped.

    ``offerings`` are by pool: a node whose price was not known gets it from there. ``nodes`` are the lit ones that
    registered; each tells of the time since the look before, which was at ``last``. Nodes ``apart`` (by name, one that
    never registered or has gone by its instance) are not counted now: each has a
    mark up to where it is counted, and a later look counts on from there. ``held`` are prices that holds have by time,
    where the meter was told of them; what it was told counts for as long as there are ``budgets``. ``seen_at`` is when
    those that have stopped were last seen. ``silent`` are pools that do not answer: none that boots there is missed.
    """

    at: datetime  # The look's.
    lit: Mapping[str, MeteredNode]  # By instance.
    over: Mapping[str, MeteredNode]  # Those that are known to have stopped.
    offerings: Mapping[str, Offering]  # By pool.
    last: datetime | None = None  # The look before.
    apart: frozenset[str] = frozenset()  # Names of those that are not counted now.
    nodes: Mapping[str, Node] = field(default_factory=dict)  # Lit ones that registered.
    held: Mapping[str, HeldPrice] = field(default_factory=dict)  # Prices that holds have by time.
    budgets: bool = False  # There are some.
    seen_at: Mapping[str, datetime] = field(default_factory=dict)  # When stopped ones were last seen.
    silent: frozenset[str] = frozenset()  # Pools that do not answer.


def day_start(day: date) -> datetime:
    """The first moment of a UTC day."""
    return datetime.combine(day, time(), EPOCH.tzinfo)


def cuts(day: date, zones: Iterable[str]) -> tuple[datetime, ...]:
    """Where a UTC day begins, and where it is cut: at the midnights of those zones."""
    start = day_start(day)
    found, named = {start}, set(zones)
    if not named:
        return (start,)
    from zoneinfo import ZoneInfo

    for zone in map(ZoneInfo, named):
        for offset in (0, 1, 2):
            local = start.astimezone(zone).date() + timedelta(days=offset)
            midnight = datetime.combine(local, time(), zone).astimezone(EPOCH.tzinfo)
            if start < midnight < start + timedelta(days=1):
                found.add(midnight)
    return tuple(sorted(found))


def metered_node(one: Lit, offering: Offering | None) -> MeteredNode:
    """A node as it is at a look, nothing of it counted yet. Without an offering, or with another type, it has no price.

    Until it registers nobody can hold it.
    """
    node = one.node
    known = offering if offering and (node is None or _same(node, offering)) else None
    itself, sold = node or known, known or node
    gpus = sold.gpus if sold else 0
    holders, parts = holdings(node, gpus) if node else ((), 1)
    usd, least_s, step_s = (known.usd_per_hour, known.minimum_s, known.increment_s) if known else (None, 0, 1)
    return MeteredNode(
        name=node.name if node else one.instance,
        pool=one.pool,
        instance_type=itself.instance_type if itself else "",
        capacity_type=itself.capacity_type if itself else "on-demand",
        gpu_model=sold.gpu_model if sold else "",
        gpus=gpus,
        usd_per_hour=usd,
        minimum_s=least_s,
        increment_s=step_s,
        since=one.since,
        until=one.since,
        ready=node is not None and node.ready and gpus > 0,
        parts=parts,
        holders=holders,
        owners={pod.uid: (pod.team, pod.workload_class) for pod in one.pods},
    )


def unallocated_node(one: Lit, name: str, offering: Offering | None) -> MeteredNode:
    """A node that is not judged: it costs what its pool's nodes cost, and nobody is said to hold it."""
    return replace(metered_node(one._replace(node=None), offering), name=name)


def stopped_node(life: Life, offering: Offering | None) -> MeteredNode:
    """A node that is known to have stopped, as far as its life tells."""
    node = metered_node(Lit(life.instance, life.pool, life.since, None), offering)
    return replace(node, name=life.node, gone_at=life.ended_at)


def _same(node: Node, offering: Offering) -> bool:
    return node.instance_type in ("", offering.instance_type) and node.capacity_type == offering.capacity_type


def count_day(
    part: MeterPart, before: Mapping[str, MeteredNode], look: MeterLook, cut_at: Sequence[datetime]
) -> MeterPart:
    """A day's nodes counted up to a look, or to the day's end. ``before`` are the nodes as the day before left them."""
    start = day_start(part.day)
    end = start + timedelta(days=1)
    at = min(look.at, end)
    nodes = dict(part.nodes)
    look = _as_first_seen(look, {**before, **part.nodes})
    for instance in sorted({*part.nodes, *before, *look.lit, *look.over}):
        if look.apart and _set_apart(instance, part.nodes, before, look):
            continue
        known = part.nodes.get(instance) or _begun(instance, before, look, start)
        if known is not None and known.since <= at:
            if part.seen <= look.at:
                known = _another_life(known, instance, look, at, cut_at)
                known = _at_prices(known, instance, look, cut_at[0], fresh=look.at < end)
            nodes[instance] = _advance(known, instance, look, at, cut_at, fresh=part.seen <= look.at < end)
    return MeterPart(day=part.day, seen=max(part.seen, at), nodes=nodes, full=part.full)


def _set_apart(
    instance: str, known: Mapping[str, MeteredNode], before: Mapping[str, MeteredNode], look: MeterLook
) -> bool:
    every = (nodes.get(instance) for nodes in (known, before, look.lit, look.over))
    return instance in look.apart or any(node is not None and node.name in look.apart for node in every)


def _as_first_seen(look: MeterLook, known: Mapping[str, MeteredNode]) -> MeterLook:
    """The look with its pods' owners as they were when each was first seen: a label that changes moves no bill."""
    lit: dict[str, MeteredNode] = {}
    nodes: dict[str, Node] = {}
    for instance, seen in look.lit.items():
        node, was = look.nodes.get(instance), known.get(instance)
        if node is None or was is None or node.name in look.apart or (then := as_first_seen(node, was.owners)) is node:
            continue
        holders, parts = holdings(then, seen.gpus)
        owners = {pod.uid: (pod.team, pod.workload_class) for pod in then.gpu_pods}
        lit[instance] = replace(seen, holders=holders, parts=parts, owners=owners)
        nodes[instance] = then
    return replace(look, lit={**look.lit, **lit}, nodes={**look.nodes, **nodes}) if lit else look


def upto(part: MeterPart, seen: datetime, cut_at: Sequence[datetime], apart: frozenset[str] = frozenset()) -> MeterPart:
    """A day's nodes counted up to the last look at all, or to the day's end: nothing of them was new since theirs.

    Those ``apart`` (by name) stay as they are.
    """
    at = min(seen, day_start(part.day) + timedelta(days=1))
    nodes = {
        instance: node if not apart.isdisjoint((instance, node.name)) else _until(node, at, cut_at)
        for instance, node in part.nodes.items()
    }
    return replace(part, seen=max(part.seen, at), nodes=nodes)


def news(was: MeterPart, now: MeterPart) -> bool:
    """True where a look brought more than time: a node that is new, gone, held by others, or has its price."""
    if was.nodes.keys() != now.nodes.keys():
        return True
    pairs = [(was.nodes[instance], node) for instance, node in now.nodes.items()]
    return not all(before is node or _same_but_time(before, node) for before, node in pairs)


def without_projects(node: MeteredNode) -> MeteredNode:
    """The node's stretches summed over projects; who its pods were first is forgotten too."""
    micros: dict[tuple[LineKind, str, str, datetime], int] = {}
    for one in node.stretches:
        key = one.kind, one.team, one.workload_class, one.begin
        micros[key] = micros.get(key, 0) + one.micros
    summed = tuple(Stretch(kind, team, "", name, begin, n) for (kind, team, name, begin), n in micros.items())
    return replace(node, stretches=summed, owners={})


def _same_but_time(was: MeteredNode, now: MeteredNode) -> bool:
    return was == replace(now, until=was.until, stretches=was.stretches)


def _begun(instance: str, before: Mapping[str, MeteredNode], look: MeterLook, start: datetime) -> MeteredNode | None:
    """A node that this day does not know yet: as yesterday left it, at today's price; or as it is first seen."""
    known = before.get(instance) or look.over.get(instance) or look.lit.get(instance)
    if known is not None and _lives_again(known, look.lit.get(instance)) and paid_until(known) <= start:
        before, known = {}, look.lit[instance]
    if known is None or (known.gone_at is not None and paid_until(known) <= start):
        return None
    if instance in before:
        known = _at_its_price(known, look.offerings.get(known.pool), start)
    else:  # Nobody held it at the look before: it was not there.
        known = replace(known, ready=False, holders=())
    return replace(known, until=max(known.until, start), stretches=())


def _lives_again(node: MeteredNode, seen: MeteredNode | None) -> bool:
    """True for an instance that was started again: it is as young as that start. It costs nothing in between."""
    return seen is not None and node.gone_at is not None and seen.since > node.gone_at


def _another_life(
    node: MeteredNode, instance: str, look: MeterLook, at: datetime, cut_at: Sequence[datetime]
) -> MeteredNode:
    """A node that was stopped and started again by a look: counted to its stop, and from its start on anew."""
    over, seen = look.over.get(instance), look.lit.get(instance)
    was = node if over is None else replace(node, gone_at=over.gone_at)
    if seen is None or not _lives_again(was, seen) or seen.since <= node.since or (seen.since > at and at < look.at):
        return node
    was, since = _until(was, at, cut_at), min(seen.since, at)  # Its cloud's clock may be ahead of ours.
    begins = max(was.until, since)
    return replace(
        was, since=since, until=begins, gone_at=None, ready=False, holders=(), owners={}, parts=1, held=False
    )


def _advance(
    node: MeteredNode, instance: str, look: MeterLook, at: datetime, cut_at: Sequence[datetime], *, fresh: bool
) -> MeteredNode:
    """Count a node up to a moment; then it is as the look shows it, where the look is newer than what is known."""
    seen = look.lit.get(instance)
    if node.usd_per_hour is None:
        node = _priced(node, look.offerings.get(node.pool))
    gone_at = _gone_at(node, instance, look, fresh=fresh)
    if gone_at != node.gone_at:
        node = replace(node, gone_at=gone_at)
    on = look.nodes.get(instance)
    tally = NodeTally(node, cut_at)
    if seen is not None and on is not None and not _as_it_was(node, seen):
        tally.count_since(look.last, node_times(on, seen.gpus), at)
    tally.count_to(at)
    if seen is None or not fresh:
        return tally.as_counted()
    return replace(
        node,
        until=tally.until,
        stretches=tally.stretches(),
        name=seen.name,
        instance_type=seen.instance_type or node.instance_type,
        gpus=seen.gpus or node.gpus,
        ready=seen.ready,
        parts=seen.parts,
        holders=seen.holders,
        owners=seen.owners,
    )


def _as_it_was(node: MeteredNode, seen: MeteredNode) -> bool:
    """True where those that held a node at the look before hold it still, as much of it each."""
    return node.ready and node.parts == seen.parts and node.holders == seen.holders


def _until(node: MeteredNode, at: datetime, cut_at: Sequence[datetime]) -> MeteredNode:
    """The node counted up to a moment, or to the end of what is paid for."""
    tally = NodeTally(node, cut_at)
    tally.count_to(at)
    return tally.as_counted()


def _gone_at(node: MeteredNode, instance: str, look: MeterLook, *, fresh: bool) -> datetime | None:
    """When a node stopped: as its life says, else at the first look that misses it. One that is there again did not.

    A look that missed it after it was last seen is believed before a life that ends later."""
    over, seen = look.over.get(instance), look.seen_at.get(instance)
    ended = over.gone_at if over is not None else None
    if ended is not None and ended <= node.since:
        ended = None  # Of a life before this one.
    if ended is not None and node.gone_at is not None and seen is not None and seen <= node.gone_at < ended:
        return node.gone_at
    if ended is not None or not fresh:
        return ended or node.gone_at
    if instance in look.lit:
        return None
    return node.gone_at or (None if node.pool in look.silent and not node.ready else look.at)


def _priced(node: MeteredNode, offering: Offering | None) -> MeteredNode:
    """The node with its price, where the pool's offering is of its type: then all that was counted of it has it."""
    kind = (node.instance_type, node.capacity_type)
    if offering is None or (node.instance_type and kind != (offering.instance_type, offering.capacity_type)):
        return node
    return replace(
        node,
        instance_type=offering.instance_type,
        capacity_type=offering.capacity_type,
        gpu_model=offering.gpu_model,
        gpus=offering.gpus,
        usd_per_hour=offering.usd_per_hour,
        minimum_s=offering.minimum_s,
        increment_s=offering.increment_s,
    )


def _at_its_price(node: MeteredNode, offering: Offering | None, start: datetime) -> MeteredNode:
    """The node of a new day: what is known of its pool now, and the price that it had, where it had one."""
    if node.usd_per_hour is None:
        return _priced(node, offering)
    left = prices_after(node.earlier, start)
    return replace(_priced(node, offering), usd_per_hour=node.usd_per_hour, earlier=left)


def _at_prices(node: MeteredNode, instance: str, look: MeterLook, start: datetime, *, fresh: bool) -> MeteredNode:
    """The node with its prices by time: its hold's, as the meter was told; else its pool's from this look on."""
    if node.usd_per_hour is None:
        return node
    if look.budgets and (held := look.held.get(instance)) is not None:
        return at_held(node, held, start)
    seen = look.lit.get(instance)
    if not fresh or seen is None or seen.usd_per_hour is None or (look.budgets and node.held):
        return node
    return change_price(node, node.usd_per_hour, seen.usd_per_hour, max(look.at, node.until))
