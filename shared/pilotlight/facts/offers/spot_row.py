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
    """``usd_per_hour`` is a node's now; ``least`` and ``most`` are of the last 7 days, where they are known.

    ``up`` is the share of the time that it is to be had, None where nobody asked. It stays ``life_h`` hours (median),
    by ``sample`` ends seen, from ``source``. ``usd_per_useful_hour`` is None where the job would never end. ``safe`` is
    the verdict for the job, ``why`` its sum.
    """

    pool: str
    instance_type: str
    zone: str
    usd_per_hour: UsdPerHour
    least: UsdPerHour | None = None
    most: UsdPerHour | None = None
    on_demand_usd_per_hour: UsdPerHour | None = None
    up: float | None = None
    life_h: float = 0.0
    sample: int = 0
    source: str = ""
    usd_per_useful_hour: UsdPerHour | None = None
    safe: bool = False
    why: str = ""


class SpotShare(msgspec.Struct, frozen=True, kw_only=True):
    """Share of one class's or team's work (``kind``, ``name``) that is on spot, and the ``most`` that may be.

    ``gpus`` are those that its pods ask for, running or not; ``spot_gpus`` those of them that run on spot.
    """

    kind: str
    name: str
    most: Decimal
    gpus: float = 0.0
    spot_gpus: float = 0.0
