"""Hours of a node: whose they were between two looks, by when pods started and ended, and what each of them cost.

A look shows who holds a node now. Pods tell since when, so that what is new holds from its start and not from the look;
what is gone holds until the look that misses it, or, on a node that fell idle, until that moment.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import msgspec

from pilotlight.decide.money.gpu_shares import shares
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
    return next((old.usd_per_hour for old in node.earlier if at < old.until), node.usd_per_hour)


def lines(nodes: Iterable[MeteredNode]) -> tuple[tuple[CostLine, ...], tuple[str, ...]]:
    """Cost of nodes, a line an owner, and the names of those whose price is not known."""
    found = list(nodes)
    priced = [(node, stretch, price_at(node, stretch.begin)) for node in found for stretch in node.stretches]
    return (
        tuple(_line(node, price, stretch) for node, stretch, price in priced if price is not None),
        tuple(sorted(node.name for node in found if node.usd_per_hour is None and node.stretches)),
    )


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
    """A node's word at a look on the time before. ``idle_since`` only while nobody holds it."""

    ready_since: datetime | None
    idle_since: datetime | None
    held: tuple[tuple[Owner, Fraction, datetime | None], ...]


def node_times(node: Node, gpus: int) -> Told:
    """The node's own times; each pod's part of it with its start."""
    held = shares(node, gpus)
    whole = max(Fraction(gpus), sum((share for _, share in held), Fraction(0))) or Fraction(1)
    own = tuple(((pod.team, pod.namespace, pod.workload_class), share / whole, pod.started_at) for pod, share in held)
    return Told(node.ready_since if node.ready else None, None if held else node.idle_since, own)


def spans(
    node: MeteredNode, says: Told, since: datetime, at: datetime
) -> Iterator[tuple[datetime, tuple[Holder, ...], int, bool]]:
    """The time from the look at ``since`` to that at ``at`` in spans: each one's end, who held it, and if it was ready.

    ``node`` is as the look before left it.
    """
    before = {(h.team, h.project, h.workload_class): Fraction(h.parts, node.parts) for h in node.holders}
    edges = {says.ready_since, says.idle_since, *(start for _, _, start in says.held)}
    begin = since
    for end in [*sorted(edge for edge in edges if edge and since < edge < at), at]:
        ready = node.ready or (says.ready_since is not None and says.ready_since <= begin)
        gone = says.idle_since is not None and since < says.idle_since <= begin
        yield end, *_holders({} if gone else before, _started(says, begin)), ready
        begin = end


def _started(says: Told, by: datetime) -> dict[Owner, Fraction]:
    """Shares that pods that are there now held at a moment already."""
    sums: dict[Owner, Fraction] = {}
    for owner, share, start in says.held:
        if start is not None and start <= by:
            sums[owner] = sums.get(owner, Fraction(0)) + share
    return sums


def _holders(before: Mapping[Owner, Fraction], now: Mapping[Owner, Fraction]) -> tuple[tuple[Holder, ...], int]:
    """Holders with their parts, of how many: those of now, and in what they leave those of before."""
    held = dict(now)
    room = max(Fraction(0), 1 - sum(now.values(), Fraction(0)))
    for owner, share in sorted(before.items()):
        more = min(room, max(Fraction(0), share - now.get(owner, Fraction(0))))
        if more:
            held[owner] = held.get(owner, Fraction(0)) + more
            room -= more
    parts = lcm(*(share.denominator for share in held.values())) if held else 1
    return tuple(Holder(*owner, int(share * parts)) for owner, share in sorted(held.items())), parts
