"""``pilotlight report --focus``: a period's cost and usage as a file of FOCUS 1.2."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from pilotlight.facts.money.bill import MeterDay
from pilotlight.tools.advice.money.spend_by import parts_by_pod, whole_lines
from pilotlight.tools.cli.records.report_by import seen_pods
from pilotlight.tools.report.tables.focus_file import write_focus_file
from pilotlight.tools.report.tables.focus_rows import focus_rows
from pilotlight.units import count_of


def write_focus(
    path: Path,
    metered: Mapping[str, Sequence[MeterDay]],
    first: date,
    last: date,
    team: str | None,
    prometheus: str,
    auth: str,
) -> str:
    """Write the file, by pods too where a Prometheus is named; says what was written."""

    def rows() -> Iterator[dict[str, str]]:
        for cluster, days in metered.items():
            if prometheus:
                seen = seen_pods(days, first, last, prometheus, auth)
                yield from focus_rows(cluster, parts_by_pod(days, first, last, seen, team))
            else:
                yield from focus_rows(cluster, whole_lines(days, first, last, team))

    said = f"{path} written: {count_of(write_focus_file(path, rows()), 'row')} of FOCUS 1.2"
    unpriced = sorted({name for days in metered.values() for day in days for name in day.unpriced})
    return f"{said}\nin no row, for their price is not known: {', '.join(unpriced)}" if unpriced else said
