"""Spot of one type in one zone as people look it up: one row of ``pilotlight spot``."""

from decimal import Decimal

import msgspec

from pilotlight.units import Seconds, UsdPerHour


class SpotJob(msgspec.Struct, frozen=True, kw_only=True):
    """The job it is looked up for: its run, how often it saves (0: never), what a checkpoint takes."""

    run_s: Seconds
    checkpoint_s: Seconds = 0.0
    takes_s: Seconds = 60.0


class SpotRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row: spot of a type in a zone, its price, how long it stays, and the verdict for a job."""

    pool: str  # The policy's pool.
    instance_type: str  # Its cloud's name of the machine.
    zone: str  # Of the cloud.
    usd_per_hour: UsdPerHour  # A node's now.
    least: UsdPerHour | None = None  # Of the last 7 days, where known.
    most: UsdPerHour | None = None  # Of the last 7 days, where known.
    on_demand_usd_per_hour: UsdPerHour | None = None  # The same type on demand, where known.
    up: float | None = None  # Share of the time that it is to be had; None where nobody asked.
    life_h: float = 0.0  # Median hours that it stays.
    sample: int = 0  # Ends seen that the median is of.
    source: str = ""  # Where those were seen.
    usd_per_useful_hour: UsdPerHour | None = None  # None where the job would never end.
    safe: bool = False  # The verdict for the job.
    why: str = ""  # The verdict's sum.


class SpotShare(msgspec.Struct, frozen=True, kw_only=True):
    """Share of one class's or team's work (``kind``, ``name``) that is on spot, and the ``most`` that may be.

    ``gpus`` are those that its pods ask for, running or not; ``spot_gpus`` those of them that run on spot.
    """

    kind: str
    name: str
    most: Decimal
    gpus: float = 0.0
    spot_gpus: float = 0.0
