"""The prices of a metered node by time, and its cost at them, a line an owner.

A price is that of its hold, or of its pool from each look that first saw a new one.
"""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

import msgspec

from pilotlight.facts.money.bill import CostLine, MeteredNode, Stretch
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
