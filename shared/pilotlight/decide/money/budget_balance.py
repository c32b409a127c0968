"""Balances of the budgets while a plan is made."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import msgspec

from pilotlight.decide.money.budget_limits import (
    applies,
    held_amount,
    latest,
    open_hold,
    paid_until,
    refusal,
    unpaid,
    windows,
)
from pilotlight.decide.money.economics import calls_s, least_s
from pilotlight.facts.money.budgets import Meter, Money, Terms

MANY = 1 << 30
"""As many nodes as anyone wants: no budget is in the way."""


@dataclass(slots=True)
class Purse:
    """The balances, and what this plan has taken so far."""

    money: Money
    now: datetime
    taken: dict[str, Decimal] = field(default_factory=dict)
    bought: int = 0

    def fit_terms(self, terms_: Terms, nodes: int = 1, others: int = 0) -> Terms:
        """The terms with a first stretch as long as each of so many nodes finds room for, if that is worth a boot.

        A whole run that is held beforehand, and a stretch that would not last for a boot and a stop, stay as they are.
        Either leaves time for the calls of all that are lit and of the ``others`` that are bought with it.
        """
        turn_s = calls_s(self.money.lit + self.bought + max(nodes - 1, others))
        if terms_.stretch_s:
            least = least_s(terms_) + turn_s
            terms_ = msgspec.structs.replace(terms_, stretch_s=max(terms_.stretch_s, least))
        else:
            terms_ = msgspec.structs.replace(terms_, calls_s=turn_s)
        hold = open_hold("", "", terms_, self.now)
        hard = [(meter, before) for meter, before in self._at_stake(terms_) if meter.budget.hard]
        if not terms_.stretch_s or not hard:
            return terms_
        until = min(latest(meter, hold, (meter.limit - before) / nodes) for meter, before in hard)
        stretch_s = (until - self.now).total_seconds()
        if not least <= stretch_s < terms_.stretch_s:
            return terms_
        return msgspec.structs.replace(terms_, stretch_s=stretch_s)

    def room(self, terms_: Terms) -> list[tuple[int, str]]:
        """Count of further nodes that each meter allows, and why not one more."""
        if nobody := unpaid({b.meter.budget.name: b.meter.budget for b in self.money.balances}.values(), terms_):
            return [(0, nobody)]
        hold = open_hold("", "", terms_, self.now)
        return [self._room(meter, before, held_amount(meter, hold), terms_) for meter, before in self._at_stake(terms_)]

    def take(self, terms_: Terms, nodes: int) -> None:
        """Count nodes as held."""
        self.bought += nodes
        hold = open_hold("", "", terms_, self.now)
        for meter, _ in self._at_stake(terms_):
            self.taken[meter.key] = self.taken.get(meter.key, Decimal(0)) + nodes * held_amount(meter, hold)

    def frees_at(self) -> list[datetime]:
        """When windows in which something is used end: the next ones begin emptier."""
        return [b.meter.end for b in self.money.balances if b.total and b.meter.end]

    def copy(self) -> "Purse":
        """A copy that later changes leave alone."""
        return Purse(self.money, self.now, dict(self.taken), self.bought)

    def _at_stake(self, terms_: Terms) -> Iterator[tuple[Meter, Decimal]]:
        """The meters that a node bought now has to fit in, and how far each is used, with what this plan has taken."""
        totals = {b.meter.key: b.total for b in self.money.balances}
        hold = open_hold("", "", terms_, self.now)
        last = paid_until(hold, max(hold.until, hold.binds_until))
        for found in self.money.balances:
            if found.meter.start <= self.now and applies(found.meter, terms_):
                for meter in windows(found.meter, last):
                    before = totals.get(meter.key, Decimal(0)) + self.taken.get(meter.key, Decimal(0))
                    if meter is found.meter or held_amount(meter, hold):
                        yield meter, before

    def _room(self, meter: Meter, before: Decimal, each: Decimal, terms_: Terms) -> tuple[int, str]:
        left = int((meter.limit - before) // each) if each > 0 else MANY
        return left, refusal(meter, before + each, terms_)
