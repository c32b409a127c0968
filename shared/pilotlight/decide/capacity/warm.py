"""Warm nodes worth their price: learned from how often the k-th idle node of a pool would have been taken.

The k-th warm node is worth keeping while (hits an hour of the k-th) x (the wait a hit saves) x (worth of a wait)
is more than its price. A hit of the k-th is a demand that arrives when k - 1 others came within the last boot.
"""

import math
from decimal import Decimal

from pilotlight.facts.memory import Hits
from pilotlight.units import HOUR, Seconds, UsdPerHour

HALF_LIFE_S = 6 * HOUR
ENOUGH = 5
"""A pool with fewer demands than this in all has no history to judge by."""

MOST = 64
"""No more than so many warm nodes of a pool are ever considered."""


def seen(hits: Hits | None, nodes: int, now_s: Seconds, boot_s: Seconds) -> Hits:
    """The history after ``nodes`` more nodes' worth of demand of a pool at once."""
    old = hits or Hits(at=now_s)
    rates = [r * _fade(now_s - old.at) for r in old.rates]
    recent = [t for t in old.recent if t > now_s - boot_s]
    for _ in range(nodes):
        recent.append(now_s)
        k = len(recent)
        if k > MOST:
            break
        rates.extend([0.0] * (k - len(rates)))
        rates[k - 1] += math.log(2) / (HALF_LIFE_S / HOUR)
    return Hits(at=now_s, recent=tuple(recent[-MOST:]), rates=tuple(rates), count=old.count + nodes)


def learned(hits: Hits | None) -> bool:
    """Whether a pool was in demand often enough to be judged by its own history."""
    return hits is not None and hits.count >= ENOUGH


def worth_keeping(hits: Hits | None, now_s: Seconds, boot_s: Seconds, price: UsdPerHour, wait: Decimal) -> int:
    """How many warm nodes of a pool pay for themselves now."""
    if hits is None or not wait:
        return 0
    values = (saving(hits, k, now_s, boot_s, wait) for k in range(1, len(hits.rates) + 1))
    return next((k for k, value in enumerate(values) if value <= price), len(hits.rates))


def pays_until_s(hits: Hits, kept: int, now_s: Seconds, boot_s: Seconds, price: UsdPerHour, wait: Decimal) -> Seconds:
    """When the first ``kept`` warm nodes, which pay for themselves now, no longer all do: demand fades."""
    least = min(saving(hits, k, now_s, boot_s, wait) for k in range(1, kept + 1))
    return now_s + HALF_LIFE_S * (math.log2(least / price) if price else 1.0)


def saving(hits: Hits, k: int, now_s: Seconds, boot_s: Seconds, wait: Decimal) -> UsdPerHour:
    """Dollars an hour that the k-th warm node of a pool saves in waiting."""
    rate = hits.rates[k - 1] if k <= len(hits.rates) else 0.0
    return wait * Decimal(rate * _fade(now_s - hits.at) * boot_s / HOUR)


def _fade(seconds: Seconds) -> float:
    return math.exp(-math.log(2) * max(seconds, 0.0) / HALF_LIFE_S)
