"""Commitments that would pay: nodes of a machine that are lit for long enough, by the hours that were metered.

A node that is paid ahead costs its committed price every hour, used or not. The ``n``-th node pays for itself where the
share of hours in which ``n`` nodes or more are lit is above the committed price over the price by the hour. Nodes that
a bill's commitments pay already are not asked for again.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.money.counted_days import CountedDays
from pilotlight.decide.money.hourly_costs import begins
from pilotlight.decide.offers.commitment_use import CommitmentUse, commitment_use
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


class Already(NamedTuple):
    """Nodes of a machine that commitments pay already, on average, and the effective dollars of one's hour."""

    nodes: Decimal = ZERO
    usd_per_hour: UsdPerHour = ZERO


NONE = Already()


class PaidAhead(NamedTuple):
    """Nodes to pay ahead, and what the metered hours would have cost so.

    ``uses`` are the shares of hours of the first node, the second, and so on; those above ``break_even`` pay.
    ``spot`` is spot's price over that by the hour, where it is known: what may be interrupted is cheaper there still.
    Nodes that are paid ``already`` are in no figure but their own.
    """

    machine: str  # The cloud's name of it.
    term: Term  # The price ahead.
    usd_per_hour: UsdPerHour  # The price by the hour.
    break_even: Decimal  # The price ahead over that by the hour.
    hours: int  # Metered hours.
    uses: tuple[Decimal, ...]  # Shares of hours of the first node, the second, ...
    commit: int  # Nodes to pay ahead.
    paid: Usd  # Dollars of the metered hours.
    paid_so: Usd  # What they would have cost so.
    spot: Decimal | None = None  # Spot's price over that by the hour.
    already: Already = NONE  # Nodes that are paid ahead.

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


def paid_already(by_cluster: Iterable[CountedDays], machine: str, gpus: int) -> Already:
    """Nodes of a machine that the commitments of several clusters' bills pay."""
    found = [commitment_use(known) for known in by_cluster]
    use = sum((one.machines.get(machine, CommitmentUse()) for one in found), CommitmentUse())
    return Already(sum((one.nodes(machine, gpus) for one in found), ZERO), use.rate * gpus)


def advice(
    machine: str,
    usd_per_hour: UsdPerHour,
    term: Term,
    lit: Sequence[Decimal],
    spot: UsdPerHour | None = None,
    already: Already = NONE,
) -> PaidAhead:
    """Advice on paying a machine ahead, by how many nodes of it were ``lit`` in each hour."""
    lit = [max(ZERO, each - already.nodes) for each in lit]
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
        already=already,
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
