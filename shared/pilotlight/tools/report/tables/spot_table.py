"""Spot by type and zone as a table, with the verdict for one job."""

from collections.abc import Sequence

from pilotlight.tools.advice.spot_table_rows import SpotJob, SpotRow, SpotShare
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import HOUR, an_hour, human

NOT_TOLD = "not told"


def table(cluster: str, rows: Sequence[SpotRow], job: SpotJob) -> Sheet:
    """A row a type and zone, the cheapest useful hour first."""
    saves = f"a checkpoint every {human(job.checkpoint_s)}" if job.checkpoint_s else "no checkpoint"
    figures = ("now", "7 days", "up", "stays", "a useful hour", "on demand")
    sheet = Sheet(
        Column("pool", "name"),
        Column("type", "name"),
        Column("zone", "name"),
        *(Column(head, "figure") for head in figures),
        Column("verdict", "words"),
        title=f"Spot of {cluster}, for a job of {human(job.run_s)} with {saves}",
    )
    for row in rows:
        sheet.add(
            row.pool,
            row.instance_type,
            row.zone or "any",
            an_hour(row.usd_per_hour),
            _week(row),
            NOT_TOLD if row.up is None else f"{row.up:.0%}",
            f"{human(row.life_h * HOUR)} ({row.sample} seen, {row.source})",
            "for ever" if row.usd_per_useful_hour is None else an_hour(row.usd_per_useful_hour),
            an_hour(row.on_demand_usd_per_hour),
            _verdict(row),
        )
    return sheet


def share_line(share: SpotShare) -> str:
    """Line on the work of a team or class that is on spot: "team research: 2 of 5 GPUs on spot, at most 50 %"."""
    return f"{share.kind} {share.name}: {share.spot_gpus:g} of {share.gpus:g} GPUs on spot, at most {share.most:.0%}"


def _week(row: SpotRow) -> str:
    if row.least is None or row.most is None:
        return NOT_TOLD
    return f"{an_hour(row.least)} to {an_hour(row.most)}"


def _verdict(row: SpotRow) -> str:
    return f"{'spot' if row.safe else 'on demand'}: {row.why}"
