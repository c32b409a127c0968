"""Spare nodes worth their price: how many of a pool are kept, and bought before they are asked for.

The k-th spare pays while (hits an hour of the k-th) x (worth of the wait and of the boot that a hit saves) is more
than its price an hour. Both sides count only while it is there. A pool keeps and buys up to the largest k for which
each spare up to the k-th pays.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal

from msgspec.structs import replace

from pilotlight.decide.capacity.demand_rates import aged, asked, hits_per_hour, weights
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Demand
from pilotlight.facts.memory import Hits, Memory
from pilotlight.units import HOUR, Seconds, cents, clock_seconds, moment, per_hour

REACTION_S = 10.0
"""From a pod's wait to the purchase for it."""
FAR_S = 90 * 24 * HOUR
"""Nothing is foretold for longer."""


def with_demand(
    memory: Memory, demands: Iterable[Demand], to: datetime | None, offerings: Mapping[str, Offering], now: datetime
) -> Memory:
    """The memory with what pods ask for that was not counted before, by pool."""
    hits, now_s = dict(memory.hits), clock_seconds(now)
    for one in demands:
        lead = lead_s(offerings[one.pool])
        hits[one.pool] = asked(hits.get(one.pool), one.nodes, one.jobs, now_s, lead)
    return replace(memory, hits=hits, counted_to=to)


def lead_s(offering: Offering) -> Seconds:
    """How long a pod waits for a node that is bought for it."""
    return offering.boot_s + REACTION_S


class Spares:
    """How many spare nodes of a pool pay for themselves now, by its own history: ``count``.

    ``wait`` is what an hour's wait for one of its nodes is worth, ``usd_per_hit`` what a spare that is taken saves: the
    wait for a boot, and the boot itself, which is paid without being used.
    """

    def __init__(self, offering: Offering, hits: Hits, value_of_wait: Decimal, now: datetime) -> None:
        self.offering = offering
        self.hits = aged(hits, clock_seconds(now))
        self.wait = value_of_wait * Decimal(hits.worth)
        price = offering.usd_per_hour
        self.usd_per_hit = per_hour(self.wait, lead_s(offering)) + per_hour(price, offering.boot_s)
        self._least = float(price / self.usd_per_hit) if self.usd_per_hit else math.inf
        self._trust = weights(self.hits)
        self.count = self._count()

    def _count(self) -> int:
        """The largest k that pays with all before it, but those that are hardly ever there."""
        most = 0
        for k in range(1, len(self.hits.rates) + 1):
            rate = self.hits_per_hour(k)
            if rate is not None and rate <= self._least:
                break
            most = most if rate is None else k
        return most

    def pays(self, k: int, after_s: Seconds = 0.0) -> bool:
        """Whether the k-th spare pays for itself, now or so much later if nothing is asked for."""
        rate = self.hits_per_hour(k, after_s)
        return rate is None or rate > self._least

    def hits_per_hour(self, k: int, after_s: Seconds = 0.0) -> float | None:
        """How often the k-th spare is taken while it is there; None for one that hardly ever is."""
        trust = weights(self.hits, after_s) if after_s else self._trust
        return hits_per_hour(self.hits, k, after_s, trust)

    def until(self, kept: int) -> datetime:
        """When the first ``kept`` spares, which pay now, no longer all do if nothing is asked for: to the second."""
        rates = [(rate, k) for k in range(1, kept + 1) if (rate := self.hits_per_hour(k)) is not None]
        k = min(rates, default=(0.0, kept))[1]
        step = 8.0
        while step < FAR_S and self.pays(k, step):
            step *= 4
        early, late = 0.0, min(step, FAR_S)
        while late - early > 1:
            middle = (early + late) / 2
            early, late = (middle, late) if self.pays(k, middle) else (early, middle)
        return moment(self.hits.at + late)

    def why(self, k: int) -> str:
        """The sum behind the k-th spare: "hit 3.1 times an hour x (190 s x $10.00/h + a boot of $0.03) > $0.53/h"."""
        price = self.offering.usd_per_hour
        boot = cents(per_hour(price, self.offering.boot_s))
        saved = f"({lead_s(self.offering):.0f} s x {cents(self.wait)}/h + a boot of {boot})"
        sign = ">" if self.pays(k) else "<="
        return f"hit {self.hits_per_hour(k) or 0.0:.2g} times an hour x {saved} {sign} {cents(price)}/h"
