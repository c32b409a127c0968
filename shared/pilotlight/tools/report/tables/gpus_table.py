"""The GPUs of a cluster as a table, and its sum in a line."""

from collections.abc import Sequence

from pilotlight.tools.glance.gpu_rows import GpuRow
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import count_of


def table(cluster: str, rows: Sequence[GpuRow]) -> Sheet:
    """A row an offering."""
    sheet = Sheet(
        Column("pool", "name"),
        Column("GPU", "words"),
        Column("instance type", "words"),
        Column("zone", "words"),
        *(Column(head, "figure") for head in ("free", "closed", "lit", "could buy", "a GPU-hour")),
        Column("boots", "words"),
        Column("parts free", "words"),
        Column("note", "words"),
        title=f"GPUs of {cluster}",
    )
    for row in rows:
        price = row.usd_per_gpu_hour
        sheet.add(
            row.pool,
            row.gpu_model or "?",
            f"{row.instance_type} {row.capacity_type}",
            row.zone or "any",
            *(f"{count:,}" for count in (row.free, row.closed, row.lit, row.could_buy)),
            "price unknown" if price is None else f"${price:,.4f}",
            f"{count_of(row.booting, 'node')} since {row.boots_since:%H:%M:%S} UTC" if row.boots_since else "",
            ", ".join(f"{count} {name}" for name, count in row.parts.items()),
            row.note,
        )
    return sheet


def summary(rows: Sequence[GpuRow]) -> str:
    """What is free now, and where a further GPU is cheapest."""
    free, lit = sum(row.free for row in rows), sum(row.lit for row in rows)
    said = f"{free:,} of {lit:,} lit GPU{'s' * (lit != 1)} free"
    booting = sum(row.booting for row in rows)
    said += f", {count_of(booting, 'node')} boot{'s' * (booting == 1)}" if booting else ""
    buyable = [row for row in rows if row.could_buy and row.usd_per_gpu_hour is not None]
    if not buyable:
        return f"{said}; none can be bought now"
    best = min(
        [row for row in buyable if not row.note] or buyable, key=lambda row: (row.usd_per_gpu_hour, row.pool, row.zone)
    )
    where = f"pool {best.pool}" + (f" in {best.zone}" if best.zone else "")
    asked = best.note or "its cloud's quota and the budgets are asked at the purchase"
    return (
        f"{said}; the cheapest to buy: {best.gpu_model} {best.capacity_type} at ${best.usd_per_gpu_hour:,.4f} a "
        f"GPU-hour in {where} ({asked})"
    )
