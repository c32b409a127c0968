"""The prices of holds, told to the meter: so that a budget and the meter count a node's time with the same prices.

Most nodes have one price for life, that of their pool, and nothing is told of them.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from pilotlight.facts.money.budgets import HeldPrice, Hold
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.billing_records import HELD_PRICE

LATE = timedelta(hours=1)
"""A price may be told so long after a look of the meter that should have known of it began."""


def tell(deps: Deps, holds: Iterable[Hold]) -> set[str]:
    """Tell of holds, as their records are, whose prices changed or are not their pool's. The ids of those."""
    prices = {offering.pool: offering.usd_per_hour for offering in deps.offerings}
    fresh = [hold for hold in holds if hold.instance and not (hold.told or hold.void)]
    fresh = [hold for hold in fresh if hold.earlier or prices.get(hold.terms.pool) != hold.terms.usd_per_hour]
    if fresh:
        found = {h.instance: HeldPrice(usd_per_hour=h.terms.usd_per_hour, earlier=h.earlier) for h in fresh}
        HELD_PRICE.add(deps.state, f"{deps.name}/{_hour(deps.state.now())}", found)
    return {hold.id for hold in fresh}


def prices_since(deps: Deps, seen: datetime | None) -> dict[str, HeldPrice]:
    """The prices by instance that a meter which has looked up to ``seen`` may not know; what was told last counts."""
    after = f"{deps.name}/{_hour(seen - LATE)}" if seen is not None else ""
    found: dict[str, HeldPrice] = {}
    for entry in HELD_PRICE.table.scan(deps.state, f"{deps.name}/", after=after):
        found |= entry.value.items
    return found


def _hour(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H}"
