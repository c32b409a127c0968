"""The pools of a cluster as a table."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from pilotlight.tools.advice.image_worth import explain_ways
from pilotlight.tools.glance.pool_row import PoolRow
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import an_hour, cents, human


def table(cluster: str, rows: Sequence[PoolRow]) -> Sheet:
    """A row a pool. What no pool has (nodes on their way, reserved, another owner, an error) has no column."""
    figures, words = _figures(rows), _words(rows)
    sheet = Sheet(
        Column("pool", "name"),
        *(Column(head, "figure") for head in figures),
        Column("instance type", "words"),
        Column("a node", "figure"),
        Column("price of", "words"),
        Column("now", "figure"),
        *(Column(head, "words") for head in ("mode", *words)),
        title=f"Pools of {cluster}",
    )
    for n, row in enumerate(rows):
        sheet.add(
            row.pool,
            *(counts[n] for counts in figures.values()),
            f"{row.instance_type} {row.capacity_type}",
            an_hour(row.usd_per_hour),
            f"{row.priced_at:%Y-%m-%d}" if row.priced_at else "",
            an_hour(row.paid),
            row.mode,
            *(said[n] for said in words.values()),
        )
    return sheet


def _figures(rows: Sequence[PoolRow]) -> dict[str, list[str]]:
    """Counts of every pool by their head; size and max always."""
    shown: dict[str, list[int | None]] = {
        "size": [row.size for row in rows],
        "on its way": [row.on_the_way for row in rows],
        "stand by": [row.standby for row in rows],
        "reserved": [row.reserved for row in rows],
        "unused": [row.unused for row in rows],
        "max": [row.most for row in rows],
    }
    told = {head: counts for head, counts in shown.items() if head in ("size", "max") or any(counts)}
    return {head: [_count(one) for one in counts] for head, counts in told.items()}


def _count(count: int | None) -> str:
    return "not there" if count is None else f"{count:,}"


def _words(rows: Sequence[PoolRow]) -> dict[str, list[str]]:
    """Remarks on pools that are not like the others: another owner, a pause, an error."""
    said = {
        "scaled by": [row.owner for row in rows],
        "stopped": [row.paused for row in rows],
        "last error": [row.last_error for row in rows],
    }
    return {head: words for head, words in said.items() if {*words} - {"", "pilotlight"}}


SHOWN = 10
"""So many images are shown, the dearest; ``--json`` gives all."""


def images_table(cluster: str, rows: Sequence[PoolRow]) -> Iterator[RenderableType]:
    """Pulls of images on new nodes, and dollars and waits a week that each way to have them sooner would save; nothing
    where no pull was seen.
    """
    worths = sorted((one for row in rows for one in row.images), key=lambda one: -one.usd_a_week)
    if not worths:
        return
    ways = [way.way for way in worths[0].ways]
    sheet = Sheet(
        Column("pool", "name"),
        Column("image", "name"),
        *(Column(head, "figure") for head in ("GiB", "a pull", "pulls a week", "cost a week")),
        *(Column(way, "figure") for way in ways),
        title=f"Images that new nodes of {cluster} pull, and what a week saves that has them sooner",
    )
    for one in worths[:SHOWN]:
        size = f"{one.size / 2**30:,.1f}" if one.size else ""
        saves = [f"{cents(way.usd_a_week)}, {human(way.seconds_each * way.pulls_a_week)}" for way in one.ways]
        sheet.add(
            one.pool, one.image, size, human(one.pull_s), f"{one.pulls_a_week:,.1f}", cents(one.usd_a_week), *saves
        )
    yield sheet
    yield from (Text(f"  {line}") for line in explain_ways())
