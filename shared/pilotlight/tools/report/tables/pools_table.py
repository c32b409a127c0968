"""The pools of a cluster as a table."""

from collections.abc import Sequence

from pilotlight.tools.glance.pool_row import PoolRow
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import an_hour


def table(cluster: str, rows: Sequence[PoolRow]) -> Sheet:
    """A row a pool."""
    figures = ("size", "on its way", "stand by", "reserved", "unused", "max")
    sheet = Sheet(
        Column("pool", "name"),
        *(Column(head, "figure") for head in figures),
        Column("instance type", "words"),
        Column("a node", "figure"),
        Column("price of", "words"),
        Column("now", "figure"),
        *(Column(head, "words") for head in ("mode", "scaled by", "last error")),
        title=f"Pools of {cluster}",
    )
    for row in rows:
        counts = (row.size, row.on_the_way, row.standby, row.reserved, row.unused, row.most)
        sheet.add(
            row.pool,
            *("not there" if count is None else f"{count:,}" for count in counts),
            f"{row.instance_type} {row.capacity_type}",
            an_hour(row.usd_per_hour),
            f"{row.priced_at:%Y-%m-%d}" if row.priced_at else "",
            an_hour(row.paid),
            row.mode,
            row.owner,
            row.last_error,
        )
    return sheet
