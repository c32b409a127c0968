"""A hard limit below what is settled and held already: it was lowered, and what was promised is kept to its end."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from pilotlight.decide.money.budget_limits import amount
from pilotlight.decide.money.holds import NAMED
from pilotlight.facts.money.budgets import Meter
from pilotlight.units import count_of


class HeldNode(NamedTuple):
    """Amount held for a node of a meter, and until when."""

    node: str
    held: Decimal
    until: datetime


def comes_to(meter: Meter, total: Decimal, shares: Sequence[HeldNode]) -> str:
    """Total of a meter that is passed, by when, and what of that is held for which node; empty of a rate."""
    own = sorted((s for s in shares if s.held > 0), key=lambda s: (s.until, s.node))
    if meter.end is None or not own:
        return ""
    spent = total - sum((s.held for s in own), Decimal(0))
    each = [f"{s.node} {amount(meter, s.held)} until {min(s.until, meter.end):%Y-%m-%d %H:%M}" for s in own[:NAMED]]
    more = [f"{count_of(len(own) - NAMED, 'node')} more"] if len(own) > NAMED else []
    settled = [f"{amount(meter, spent)} settled"] if spent > 0 else []
    said = f"it comes to {amount(meter, total)} at most, by {min(own[-1].until, meter.end):%Y-%m-%d %H:%M} UTC"
    return f"{said}: {', '.join([*settled, *each, *more])}; nothing new is held"
