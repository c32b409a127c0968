"""Balances of the budgets while a plan is made."""

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
from pilotlight.facts.money.budgets import Hold, Meter, Money, Terms

MANY = 1 << 30
"""As many nodes as anyone wants: no budget is in the way."""


@dataclass(slots=True)
class Purse:
    """The balances, and what this plan has taken so far."""

    money: Money
    now: datetime
    taken: dict[str, Decimal] = field(default_factory=dict)
    bought: int = 0
    _asked: tuple[Terms, tuple[Hold, list[tuple[Meter, Decimal, Decimal]]]] | None = None

    def fit_terms(self, terms_: Terms, nodes: int = 1, others: int = 0) -> Terms:
        """The terms with a first stretch as long as each of so many nodes finds room for, if that is worth a boot.

        A whole run that is held beforehand, and a stretch that would not last for a boot and a stop, stay as they are.
        Either leaves time for the calls of all that are lit and of the ``others`` that are bought with it.
        """
        turn_s = calls_s(self.money.lit + self.bought + max(nodes - 1, others))
        if not terms_.stretch_s:
            return msgspec.structs.replace(terms_, calls_s=turn_s)
        least = least_s(terms_) + turn_s
        terms_ = msgspec.structs.replace(terms_, stretch_s=max(terms_.stretch_s, least))
        hold, at_stake = self._at_stake(terms_)
        hard = [(meter, before) for meter, before, _ in at_stake if meter.budget.hard]
        if not hard:
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
        return [self._room(*each, terms_) for each in self._at_stake(terms_)[1]]

    def take(self, terms_: Terms, nodes: int) -> None:
        """Count nodes as held."""
        self.bought += nodes
        for meter, _, each in self._at_stake(terms_)[1]:
            self.taken[meter.key] = self.taken.get(meter.key, Decimal(0)) + nodes * each
        self._asked = None

    def frees_at(self) -> list[datetime]:
        """When windows in which something is used end: the next ones begin emptier."""
        return [b.meter.end for b in self.money.balances if b.total and b.meter.end]

    def copy(self) -> "Purse":
        """A copy that later changes leave alone."""
        return Purse(self.money, self.now, dict(self.taken), self.bought)

    def _at_stake(self, terms_: Terms) -> tuple[Hold, list[tuple[Meter, Decimal, Decimal]]]:
        """The hold of a node bought now, and each meter that it has to fit in: how far that is used, with all that this
        plan has taken, and what the node takes of it. Worked out once for the same terms, until something is taken.
        """
        if self._asked is None or self._asked[0] is not terms_:
            self._asked = terms_, self._work_out(terms_)
        return self._asked[1]

    def _work_out(self, terms_: Terms) -> tuple[Hold, list[tuple[Meter, Decimal, Decimal]]]:
        totals = {b.meter.key: b.total for b in self.money.balances}
        hold = open_hold("", "", terms_, self.now)
        last = paid_until(hold, max(hold.until, hold.binds_until))
        found: list[tuple[Meter, Decimal, Decimal]] = []
        for own in (b.meter for b in self.money.balances):
            for meter in windows(own, last) if own.start <= self.now and applies(own, terms_) else ():
                before = totals.get(meter.key, Decimal(0)) + self.taken.get(meter.key, Decimal(0))
                each = held_amount(meter, hold)
                if meter is own or each:
                    found.append((meter, before, each))
        return hold, found

    def _room(self, meter: Meter, before: Decimal, each: Decimal, terms_: Terms) -> tuple[int, str]:
        left = int((meter.limit - before) // each) if each > 0 else MANY
        return left, refusal(meter, before + each, terms_)
