"""What the budgets leave while a plan is made."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from pilotlight.decide.money.budget import applies, ends_within, following, held, opened, refusal
from pilotlight.facts.budget import Meter, Money, Terms

MANY = 1 << 30
"""As many nodes as anyone wants: no budget is in the way."""


@dataclass(slots=True)
class Purse:
    """The balances, and what this plan has taken so far."""

    money: Money
    now: datetime
    taken: dict[str, Decimal] = field(default_factory=dict)

    def room(self, terms_: Terms) -> list[tuple[int, str]]:
        """How many more nodes each meter allows, and why not one more."""
        hold = opened("", "", terms_, self.now)
        return [self._room(meter, before, held(meter, hold), terms_) for meter, before in self._at_stake(terms_)]

    def take(self, terms_: Terms, nodes: int) -> None:
        """Count nodes as held."""
        hold = opened("", "", terms_, self.now)
        for meter, _ in self._at_stake(terms_):
            self.taken[meter.key] = self.taken.get(meter.key, Decimal(0)) + nodes * held(meter, hold)

    def frees_at(self) -> list[datetime]:
        """When windows in which something is used end: the next ones begin empty."""
        return [b.meter.end for b in self.money.balances if (b.total or b.ahead) and b.meter.end]

    def saved(self) -> "Purse":
        """A copy that later changes leave alone."""
        return Purse(self.money, self.now, dict(self.taken))

    def _at_stake(self, terms_: Terms) -> Iterator[tuple[Meter, Decimal]]:
        """The meters that a node bought now has to fit in, and how far each is used."""
        for found in self.money.balances:
            if applies(found.meter, terms_):
                yield found.meter, found.total
                end = ends_within(found.meter, self.now, terms_.boot_s)
                if end is not None:
                    yield following(found.meter, end), found.ahead

    def _room(self, meter: Meter, before: Decimal, each: Decimal, terms_: Terms) -> tuple[int, str]:
        before += self.taken.get(meter.key, Decimal(0))
        left = int((meter.limit - before) // each) if each > 0 else MANY
        return left, refusal(meter, before + each, terms_)
