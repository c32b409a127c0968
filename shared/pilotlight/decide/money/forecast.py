"""Forecast of a budget's period: its spend, and as many days more as are left, each like the last ones.

The band is the prediction interval for the sum of m further days of which n are known, with mean x and standard
deviation s: m x +- t s sqrt(m + m^2 / n), with Student's t at n - 1 degrees of freedom (Hahn and Meeker, "Statistical
Intervals", 1991, section 4.7). It takes days for independent.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from math import sqrt
from statistics import mean, stdev

from pilotlight.facts.money.budgets import Forecast

DAYS = 14
"""So many whole days are looked back on: two of each day of the week."""

_T90 = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.350)
"""Student's t that holds four in five: its 0.90 quantile at 1, 2, ... degrees of freedom."""


def forecast(
    spent: Decimal, limit: Decimal, days: Sequence[Decimal], now: datetime, end: datetime, rate_a_day: Decimal
) -> Forecast:
    """The end of a period with ``spent`` by now, from what the last whole ``days`` took.

    With fewer than two days known it is what ``rate_a_day``, that of now, comes to, without a band.
    """
    left = (end - now) / timedelta(days=1)
    if len(days) < 2:
        return Forecast(likely=spent + rate_a_day * _exact(left), runs_out=_out(spent, limit, rate_a_day, now, end))
    amounts = [float(day) for day in days]
    each = mean(amounts)
    spread = _T90[min(len(days) - 1, len(_T90)) - 1] * stdev(amounts) * sqrt(left + left * left / len(days))
    return Forecast(
        likely=spent + _exact(left * each),
        low=spent + _exact(max(0.0, left * each - spread)),
        high=spent + _exact(left * each + spread),
        runs_out=_out(spent, limit, _exact(each), now, end),
    )


def _out(spent: Decimal, limit: Decimal, a_day: Decimal, now: datetime, end: datetime) -> datetime | None:
    """When the limit will be reached, if that is before the period ends; None where it is reached already."""
    if spent >= limit or a_day <= 0 or (limit - spent) / a_day > 1000:
        return None
    out = now + timedelta(days=float((limit - spent) / a_day))
    minute = out.replace(second=0, microsecond=0)
    # Told in minutes it must not lie before now.
    out = minute if minute == out else minute + timedelta(minutes=1)
    return out if out < end else None


def _exact(number: float) -> Decimal:
    return Decimal(f"{number:.6f}")
