"""Months, days and clusters as a person names them on the command line."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from pilotlight.errors import BadInput

YEARS = range(1970, 2200)
"""Years that anything here may be of."""


def days_of(text: str, now: datetime, option: str = "--month") -> tuple[date, date]:
    """The first and the last day of a month; the one that goes on where none is named. Raises ``BadInput``."""
    if not text:
        text = f"{now.astimezone(UTC):%Y-%m}"
    match = re.fullmatch(r"([0-9]{4})-([0-9]{2})", text)
    try:
        first = date(int(match[1]), int(match[2]), 1) if match else None
    except ValueError:
        first = None
    if first is None or first.year not in YEARS:
        raise BadInput(f"{option} {text}: write it as 2026-10")
    return first, (first + timedelta(days=32)).replace(day=1) - timedelta(days=1)


def period_of(month: str, since: str, until: str, now: datetime) -> tuple[date, date]:
    """The first and the last day of a month, or of the days that are named. Raises ``BadInput``."""
    if not (since or until):
        return days_of(month, now)
    if month:
        raise BadInput("--month is a period of its own: name it, or --since and --until")
    if not since:
        raise BadInput("--until names the last day: name the first by --since")
    first, last = _day("--since", since), _day("--until", until) if until else now.astimezone(UTC).date()
    if first > last:
        raise BadInput(f"--since {first} is after {'--until' if until else 'today'}, {last}: name an earlier day")
    return first, last


def _day(option: str, text: str) -> date:
    try:
        # strptime takes the digits of any script.
        day = datetime.strptime(text if text.isascii() else "", "%Y-%m-%d").date()  # noqa: DTZ007  A day, in UTC.
    except ValueError:
        day = date.min
    if day.year not in YEARS:
        raise BadInput(f"{option} {text}: write a day as 2026-10-31")
    return day


def chosen_clusters(cluster: str, clusters: Sequence[str]) -> Sequence[str]:
    """One of many clusters; all where none is named. Raises ``BadInput``."""
    if cluster and cluster not in clusters:
        raise BadInput(f"--cluster {cluster}: is none of ours; name one of {', '.join(clusters)}")
    return [cluster] if cluster else clusters
