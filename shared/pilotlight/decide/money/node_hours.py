"""Hours of a node: whose they were between two looks, by when pods started and ended, and what each of them cost.

A look shows who holds a node now. Pods tell since when, so that what is new holds from its start and not from the look;
what is gone holds until the look that misses it, or, on a node that fell idle, until that moment.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from math import gcd, lcm
from typing import NamedTuple

import msgspec

from pilotlight.decide.money.gpu_shares import pod_parts
from pilotlight.facts.capacity import Node
from pilotlight.facts.money.bill import CostLine, Holder, MeteredNode, Stretch
from pilotlight.facts.money.budgets import HeldPrice, Priced
from pilotlight.units import UsdPerHour

MICROS_PER_HOUR = 3_600_000_000
MOST_PRICES = 24
"""A node that no budget holds has so many prices a day at most, for its record is bounded; a further one counts from
the next day on."""


def at_held(node: MeteredNode, held: HeldPrice, start: datetime) -> MeteredNode:
    """The node at the prices of its hold, from a day's ``start`` on."""
    earlier = prices_after(held.earlier, start)
    return msgspec.structs.replace(node, usd_per_hour=held.usd_per_hour, earlier=earlier, held=True)


def change_price(node: MeteredNode, last: UsdPerHour, price: UsdPerHour, since: datetime) -> MeteredNode:
    """The node with a price from a moment on, where that is new; ``last`` is the last one that is known of it.

    A price of its hold that was to come after that moment does not come.
    """
    if not node.earlier and price == last:
        return node
    known = tuple(old for old in node.earlier if old.until < since)
    now = node.earlier[len(known)].usd_per_hour if len(known) < len(node.earlier) else last
    if len(known) >= MOST_PRICES or price == now == last:
        return node
    was = Priced(until=since, usd_per_hour=now)
    return msgspec.structs.replace(node, usd_per_hour=price, earlier=(*known, was), held=False)


def prices_after(prices: Iterable[Priced], start: datetime) -> tuple[Priced, ...]:
    """The prices that count after a moment, of those that end."""
    return tuple(old for old in prices if old.until > start)


def price_at(node: MeteredNode, at: datetime) -> UsdPerHour | None:
    """Price of an hour of a node at a moment of its day."""
    for old in node.earlier:
        if at < old.until:
            return old.usd_per_hour
    return node.usd_per_hour


def lines(nodes: Iterable[MeteredNode]) -> tuple[tuple[CostLine, ...], tuple[str, ...]]:
    """Cost of nodes, a line an owner, and the names of those whose price is not known."""
    found: list[CostLine] = []
    unpriced: list[str] = []
    for node in nodes:
        if node.usd_per_hour is None and node.stretches:
            unpriced.append(node.name)
        for stretch in node.stretches:
            price = price_at(node, stretch.begin) if node.earlier else node.usd_per_hour
            if price is not None:
                found.append(_line(node, price, stretch))
    return tuple(found), tuple(sorted(unpriced))


def sum_lines(lines: Iterable[CostLine], **same: str) -> tuple[CostLine, ...]:
    """Lines that differ in dollars and GPU-hours alone as one, with what is the ``same`` for all then."""
    sums: dict[CostLine, tuple[Decimal, Decimal]] = {}
    for line in lines:
        key = msgspec.structs.replace(line, usd=Decimal(0), gpu_hours=Decimal(0), **same)
        usd, hours = sums.get(key, (Decimal(0), Decimal(0)))
        sums[key] = usd + line.usd, hours + line.gpu_hours
    return tuple(msgspec.structs.replace(line, usd=usd, gpu_hours=hours) for line, (usd, hours) in sums.items())


def _line(node: MeteredNode, price: UsdPerHour, stretch: Stretch) -> CostLine:
    hours = Decimal(stretch.micros) / MICROS_PER_HOUR
    return CostLine(
        kind=stretch.kind,
        pool=node.pool,
        node=node.name,
        instance_type=node.instance_type,
        capacity_type=node.capacity_type,
        gpu_model=node.gpu_model,
        team=stretch.team,
        project=stretch.project,
        workload_class=stretch.workload_class,
        begin=stretch.begin,
        gpu_hours=hours * node.gpus,
        usd=hours * price,
    )


Owner = tuple[str, str, str]
"""Team, project and class."""


class Told(NamedTuple):
    """A node's word at a look on the time before. ``idle_since`` only while nobody holds it; ``held`` are parts of
    so many ``parts``."""

    ready_since: datetime | None
    idle_since: datetime | None
    held: tuple[tuple[Owner, int, datetime | None], ...]
    parts: int


def node_times(node: Node, gpus: int) -> Told:
    """The node's own times; each pod's part of it with its start."""
    held, of_gpu = pod_parts(node, gpus)
    whole = max(gpus * of_gpu, sum([own for _, own in held])) or 1
    own = tuple([((pod.team, pod.namespace, pod.workload_class), own, pod.started_at) for pod, own in held])
    return Told(node.ready_since if node.ready else None, None if held else node.idle_since, own, whole)


def spans(
    node: MeteredNode, says: Told, since: datetime, at: datetime
) -> Iterator[tuple[datetime, tuple[Holder, ...], int, bool]]:
    """The time from the look at ``since`` to that at ``at`` in spans: each one's end, who held it, and if it was ready.

    ``node`` is as the look before left it.
    """
    edges = {says.ready_since, says.idle_since, *[start for _, _, start in says.held]}
    begin = since
    for end in [*sorted([edge for edge in edges if edge and since < edge < at]), at]:
        ready = node.ready or (says.ready_since is not None and says.ready_since <= begin)
        gone = says.idle_since is not None and since < says.idle_since <= begin
        started = _started(says, begin)
        if not gone and (not started or _goes_on(node, started, says.parts)):
            yield end, node.holders, node.parts, ready
        else:
            yield end, *_holders(() if gone else node.holders, node.parts, started, says.parts), ready
        begin = end


def _started(says: Told, by: datetime) -> dict[Owner, int]:
    """Parts that pods that are there now held at a moment already."""
    sums: dict[Owner, int] = {}
    for owner, own, start in says.held:
        if start is not None and start <= by:
            sums[owner] = sums.get(owner, 0) + own
    return sums


def _goes_on(node: MeteredNode, now: Mapping[Owner, int], parts: int) -> bool:
    """True where the holders of before hold as much now."""
    if len(now) != len(node.holders):
        return False
    for was in node.holders:
        if now.get((was.team, was.project, was.workload_class), -1) * node.parts != was.parts * parts:
            return False
    return True


def _holders(
    before: Sequence[Holder], before_parts: int, now: Mapping[Owner, int], now_parts: int
) -> tuple[tuple[Holder, ...], int]:
    """Holders with their parts, of how many: those of now, and in what they leave those of before."""
    whole = lcm(before_parts, now_parts)
    held = {owner: own * (whole // now_parts) for owner, own in now.items()}
    room = max(0, whole - sum(held.values()))
    for owner, parts in sorted([((was.team, was.project, was.workload_class), was.parts) for was in before]):
        mine = held.get(owner, 0)
        more = min(room, max(0, parts * (whole // before_parts) - mine))
        if more:
            held[owner] = mine + more
            room -= more
    common = gcd(whole, *held.values()) if held else whole
    return tuple([Holder(*owner, own // common) for owner, own in sorted(held.items())]), whole // common
