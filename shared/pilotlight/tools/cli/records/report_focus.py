"""``pilotlight report --focus``: a period's cost and usage as a file of FOCUS 1.2."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from pilotlight.facts.money.money_policy import CostBasis
from pilotlight.tools.advice.money.priced_days import PricedDays
from pilotlight.tools.advice.money.spend_by import PodTime, parts_by_pod, whole_lines
from pilotlight.tools.cli.records.report_by import seen_pods
from pilotlight.tools.report.tables.focus_file import write_focus_file
from pilotlight.tools.report.tables.focus_rows import Part, focus_rows
from pilotlight.units import count_of


def write_focus(
    path: Path,
    priced: Mapping[str, Mapping[CostBasis, PricedDays]],
    first: date,
    last: date,
    team: str | None,
    prometheus: str,
    auth: str,
) -> str:
    """Write the file, by pods too where a Prometheus is named; says what was written. Each cluster's days come in
    every basis."""

    def rows() -> Iterator[dict[str, str]]:
        for cluster, bases in priced.items():
            days = bases["effective"].days
            seen = list(seen_pods(days, first, last, prometheus, auth)) if prometheus else None
            parts = {basis: _parts(of, first, last, seen, team) for basis, of in bases.items()}
            yield from focus_rows(cluster, parts, bases["effective"].covered)

    said = f"{path} written: {count_of(write_focus_file(path, rows()), 'row')} of FOCUS 1.2"
    unpriced = sorted({name for bases in priced.values() for day in bases["effective"].days for name in day.unpriced})
    return f"{said}\nin no row, for their price is not known: {', '.join(unpriced)}" if unpriced else said


def _parts(
    priced: PricedDays, first: date, last: date, seen: Sequence[PodTime] | None, team: str | None
) -> Iterator[Part]:
    if seen is None:
        return whole_lines(priced.days, first, last, team)
    return parts_by_pod(priced.days, first, last, seen, team)
