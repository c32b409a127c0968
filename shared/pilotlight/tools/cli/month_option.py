"""Months and clusters as a person names them on the command line."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from pilotlight.errors import BadInput


def days_of(text: str, now: datetime) -> tuple[date, date]:
    """The first and the last day of a month; the one that goes on where none is named. Raises ``BadInput``."""
    if not text:
        text = f"{now.astimezone(UTC):%Y-%m}"
    match = re.fullmatch(r"(\d{4})-(\d{2})", text)
    try:
        first = date(int(match[1]), int(match[2]), 1) if match else None
    except ValueError:
        first = None
    if first is None:
        raise BadInput(f"--month {text}: write it as 2026-10")
    return first, (first + timedelta(days=32)).replace(day=1) - timedelta(days=1)


def chosen_clusters(cluster: str, clusters: Sequence[str]) -> Sequence[str]:
    """One of many clusters; all where none is named. Raises ``BadInput``."""
    if cluster and cluster not in clusters:
        raise BadInput(f"--cluster {cluster}: there are {', '.join(clusters)}")
    return [cluster] if cluster else clusters
