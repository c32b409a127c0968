"""Compute Savings Plans: they cover whatever runs in any region, in Fargate and in Lambda, so what is seen here does
not tell what is left of one. Cost Explorer does: the least that went unused on a day of the last week counts.

What a pool's own nodes used of a plan in that week counts as used too: rather too little is told than too much.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal

import msgspec

from pilotlight.adapters.aws_api.services import JsonApi
from pilotlight.errors import Denied
from pilotlight.ports.state import Clock
from pilotlight.units import HOUR, Seconds

KEEP_S: Seconds = 6 * HOUR
"""AWS charges a cent for every question."""
DAYS, LATE_DAYS = 7, 2
"""So many days are looked at; the last two are not told whole yet."""


class _Used(msgspec.Struct, frozen=True):
    TotalCommitment: str = "0"
    UnusedCommitment: str = "0"


class _Day(msgspec.Struct, frozen=True):
    Utilization: _Used = _Used()


class _Days(msgspec.Struct, frozen=True):
    SavingsPlansUtilizationsByTime: tuple[_Day, ...] = ()


class UnusedPlans:
    """Dollars an hour that are left of plans. A role without the right is told nothing: then nothing is. Safe for many
    threads."""

    def __init__(self, explorer: JsonApi, clock: Clock) -> None:
        self._explorer, self._clock = explorer, clock
        self._known: dict[str, Decimal] = {}
        self._age: Callable[[], Seconds] | None = None

    def an_hour(self, arns: Sequence[str]) -> Mapping[str, Decimal]:
        """Dollars an hour of each plan that nothing used."""
        if self._age is None or self._age() > KEEP_S or not set(arns) <= self._known.keys():
            self._known = {arn: self._least(arn) for arn in arns}
            self._age = self._clock.stopwatch()
        return self._known

    def _least(self, arn: str) -> Decimal:
        ends = self._clock.now().date() - timedelta(days=LATE_DAYS - 1)
        asked = {
            "TimePeriod": {"Start": f"{ends - timedelta(days=DAYS)}", "End": f"{ends}"},
            "Granularity": "DAILY",
            "Filter": {"Dimensions": {"Key": "SAVINGS_PLAN_ARN", "Values": [arn]}},
        }
        try:
            days = self._explorer.read("GetSavingsPlansUtilization", _Days, asked).SavingsPlansUtilizationsByTime
        except Denied:
            return Decimal(0)
        told = [day.Utilization for day in days if Decimal(day.Utilization.TotalCommitment) > 0]
        return min((Decimal(day.UnusedCommitment) / 24 for day in told), default=Decimal(0))
