"""Use of the GPUs that pods held, week by week, in hours that add up, and held against the meter's dollars.

A held GPU-hour is one of three: silent (in a stretch of an hour or more under 5 %), working (its activity) or room
(the rest of an hour that was not silent). What was not measured is in none; a device that pods share counts once.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from pilotlight.decide.utilisation.idle_pods import SILENT_S, UNDER
from pilotlight.decide.utilisation.shared_devices import holders
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.units import HOUR, Seconds, round_usd


class Hours(NamedTuple):
    """GPU-hours."""

    silent: float = 0.0
    working: float = 0.0
    room: float = 0.0

    @property
    def held(self) -> float:
        """All that was measured."""
        return self.silent + self.working + self.room


class MeteredWeeks(NamedTuple):
    """Dollars of nodes, to the cent: teams' part by what their GPUs did, and the meter's own idle and shared lines."""

    silent: Decimal
    working: Decimal
    room: Decimal
    unseen: Decimal
    """Held by the meter's count and never seen by telemetry: neither idle nor busy."""
    idle: Decimal
    shared: Decimal

    @property
    def total(self) -> Decimal:
        """Dollars that the meter has for the same days."""
        return sum(self, Decimal(0))


def weeks(telemetry: Telemetry) -> dict[date, Hours]:
    """By the Monday (UTC) on which each week begins; weeks of which nothing was measured are left out."""
    mondays = [_monday(telemetry.start_s + n * telemetry.step_s) for n in range(telemetry.samples)]
    sums: dict[date, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for series, counts in zip(telemetry.series, holders(telemetry), strict=True):
        for monday, value, silent, count in zip(
            mondays, series.activity, _silent(series.activity, telemetry.step_s), counts, strict=False
        ):
            if value != value:
                continue
            one, row = telemetry.step_s / HOUR / count, sums[monday]
            if silent:
                row[0] += one
            else:
                row[1] += value * one
                row[2] += (1 - value) * one
    return {monday: Hours(*row) for monday, row in sorted(sums.items())}


def total(by_week: dict[date, Hours]) -> Hours:
    """All weeks together."""
    return Hours(*(sum(part) for part in zip(*by_week.values(), strict=True))) if by_week else Hours()


def dollars_by_use(hours: Hours, metered_hours: float, teams: Decimal, idle: Decimal, shared: Decimal) -> MeteredWeeks:
    """The meter's dollars of the same days, the teams' by what their GPUs did; the parts add up to it to the cent."""
    unseen = max(0.0, metered_hours - hours.held)
    all_hours = hours.held + unseen
    shares = [Decimal(repr(h / all_hours)) if all_hours else Decimal(0) for h in hours]
    silent, working, room = (round_usd(teams * share) for share in shares)
    if not unseen and all_hours:
        room = teams - silent - working
    return MeteredWeeks(silent, working, room, teams - silent - working - room, idle, shared)


def _silent(activity: Sequence[float], step_s: Seconds) -> Iterator[bool]:
    """For each sample, whether it lies in a stretch of silence that is long enough."""
    least, run = max(1, int(SILENT_S / step_s)), 0
    for value in activity:
        if value < UNDER:
            run += 1
            continue
        yield from (run >= least,) * run
        yield False
        run = 0
    yield from (run >= least,) * run


def _monday(at_s: float) -> date:
    day = datetime.fromtimestamp(at_s, UTC).date()
    return day - timedelta(days=day.weekday())
