"""Commitments that would pay: nodes of a machine that are lit for long enough, by the hours that were metered.

A node that is paid ahead costs its committed price every hour, used or not. The ``n``-th node pays for itself where the
share of hours in which ``n`` nodes or more are lit is above the committed price over the price by the hour.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.money.hourly_costs import begins
from pilotlight.facts.money.bill import HourCost
from pilotlight.units import Usd, UsdPerHour

ZERO = Decimal(0)
WEEK_HOURS = 168
"""From fewer hours nothing is advised: a week has all its days."""
YEAR_HOURS = 8760


class Term(NamedTuple):
    """Price of a machine's hour when it is paid ahead."""

    name: str
    usd_per_hour: UsdPerHour


class PaidAhead(NamedTuple):
    """Nodes to pay ahead, and what the metered hours would have cost so.

    ``uses`` are the shares of hours of the first node, the second, and so on; those above ``break_even`` pay.
    ``spot`` is spot's price over that by the hour, where it is known: what may be interrupted is cheaper there still.
    """

    machine: str
    term: Term
    usd_per_hour: UsdPerHour
    break_even: Decimal
    hours: int
    uses: tuple[Decimal, ...]
    commit: int
    paid: Usd
    paid_so: Usd
    spot: Decimal | None = None

    @property
    def saved(self) -> Usd:
        """Dollars that the metered hours would have cost less."""
        return self.paid - self.paid_so

    @property
    def saved_a_year(self) -> Usd:
        """The same for a year of such hours."""
        return self.saved * YEAR_HOURS / self.hours if self.hours else ZERO

    @property
    def enough(self) -> bool:
        """True where the hours are enough to go by."""
        return self.hours >= WEEK_HOURS


def nodes(hours: Iterable[HourCost], machine: str, gpus: int) -> list[Decimal]:
    """Nodes of a machine that were lit by the hour, on average, in each metered hour; 0 where there was none."""
    return [one.rates.machines.get(f"{machine} on-demand", ZERO) / gpus for one in hours]


def advice(
    machine: str, usd_per_hour: UsdPerHour, term: Term, lit: Sequence[Decimal], spot: UsdPerHour | None = None
) -> PaidAhead:
    """Advice on paying a machine ahead, by how many nodes of it were ``lit`` in each hour."""
    break_even = term.usd_per_hour / usd_per_hour
    most = int(max(lit, default=ZERO).to_integral_value(ROUND_CEILING))
    uses = tuple(
        sum((min(max(each - n, ZERO), Decimal(1)) for each in lit), ZERO) / max(1, len(lit)) for n in range(most)
    )
    commit = sum(use > break_even for use in uses)
    ahead = commit * term.usd_per_hour * len(lit)
    rest = sum((max(ZERO, each - commit) for each in lit), ZERO) * usd_per_hour
    return PaidAhead(
        machine=machine,
        term=term,
        usd_per_hour=usd_per_hour,
        break_even=break_even,
        hours=len(lit),
        uses=uses,
        commit=commit,
        paid=sum(lit, ZERO) * usd_per_hour,
        paid_so=ahead + rest,
        spot=spot / usd_per_hour if spot is not None else None,
    )


def together(by_cluster: Mapping[str, Sequence[HourCost]]) -> list[HourCost]:
    """The hours of several clusters as one's: a commitment is the account's."""
    sums: dict[object, HourCost] = {}
    for hours in by_cluster.values():
        for one in hours:
            at = begins(one)
            sums[at] = _added(sums[at], one) if at in sums else one
    return list(sums.values())


def _added(one: HourCost, other: HourCost) -> HourCost:
    names = one.rates.machines.keys() | other.rates.machines.keys()
    machines = {n: one.rates.machines.get(n, ZERO) + other.rates.machines.get(n, ZERO) for n in sorted(names)}
    return replace(one, rates=replace(one.rates, machines=machines))
