"""Rates by the hour of the day, or of the week, put beside the half-lives: what ``ablation.py`` tries on top.

Each pool's demand is counted by hour from its beginning on. Once two cycles were seen a half-life's rate is
multiplied by how busy the hour is beside the hours that the half-life looks back on: a day's rate at nine in the
morning by nine's share of the day.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from unittest.mock import patch

from pilotlight.decide.nodes.spares import spare_nodes
from pilotlight.decide.nodes.spares.demand_rates import HALF_LIVES_S, Outlook
from pilotlight.decide.nodes.spares.spare_nodes import Spares
from pilotlight.facts.capacity import Offering
from pilotlight.facts.memory import Hits
from pilotlight.units import HOUR, Seconds

LEANS = 0.3
"""Each hour's figure leans on the mean of all by so much."""


class Hours:
    """Purchases asked of a pool in each hour of a cycle of ``length`` hours, and how long it was watched."""

    def __init__(self, length: int) -> None:
        self.counts = [0.0] * length
        self.began_s: Seconds | None = None
        self.seen = 0

    def busy(self, at_s: Seconds, watched_s: Seconds) -> float:
        """Busyness of an hour beside the mean of all; 1 while less than two cycles were seen."""
        length = len(self.counts)
        mean = sum(self.counts) / length
        if not mean or watched_s < 2 * length * HOUR:
            return 1.0
        return (self.counts[int(at_s // HOUR) % length] + LEANS * mean) / (mean * (1 + LEANS))

    def factors(self, now_s: Seconds, at_s: Seconds) -> list[float]:
        """Factor on each half-life's rate as of now, for a moment later."""
        watched_s = now_s - self.began_s if self.began_s is not None else 0.0
        return [self.busy(at_s, watched_s) / self._before(now_s, half, watched_s) for half in HALF_LIVES_S]

    def _before(self, now_s: Seconds, half_life_s: Seconds, watched_s: Seconds) -> float:
        back = [now_s - each * HOUR for each in range(max(1, round(half_life_s / HOUR)))]
        return sum(self.busy(at_s, watched_s) for at_s in back) / len(back)


class Seasonal:
    """An outlook whose rates follow the hours of its pool."""

    def __init__(self, hits: Hits, hours: Hours) -> None:
        self.bare, self.hits, self.hours = Outlook(hits), hits, hours

    def weights(self) -> Sequence[float]:
        """As of the half-lives alone."""
        return self.bare.weights()

    def hits_per_hour(self, k: int, after_s: Seconds = 0.0) -> float | None:
        """As the half-lives have it, times what the hours make of it."""
        rate = self.bare.hits_per_hour(k, after_s)
        if not rate or k > len(self.hits.rates):
            return rate
        parts = [w * r for w, r in zip(self.bare.weights(), self.hits.rates[k - 1], strict=True)]
        factors = self.hours.factors(self.hits.at, self.hits.at + after_s)
        whole = sum(parts)
        return rate * sum(p * f for p, f in zip(parts, factors, strict=True)) / whole if whole else rate


def spares_by(length: int) -> type[Spares]:
    """Spares that count their pools' demand by hour, in cycles of so many hours: for one run in its own process."""
    pools: dict[str, Hours] = defaultdict(lambda: Hours(length))

    class ByHour(Spares):
        """As ``Spares``, its outlook by hour."""

        def __init__(self, offering: Offering, hits: Hits, value_of_wait: Decimal, now: datetime) -> None:
            hours = pools[offering.pool]
            asked_s = hits.asked_at or hits.at
            hours.began_s = asked_s if hours.began_s is None else hours.began_s
            hours.counts[int(asked_s // HOUR) % length] += max(0, hits.count - hours.seen)
            hours.seen = max(hours.seen, hits.count)
            with patch.object(spare_nodes, "Outlook", lambda hits: Seasonal(hits, hours)):
                super().__init__(offering, hits, value_of_wait, now)

    return ByHour
