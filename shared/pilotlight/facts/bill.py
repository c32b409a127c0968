"""Money spent: what the meter counted from node life, and what a cloud has billed. Sums are Decimal US dollars."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.workload import Finding
from pilotlight.units import Usd

LineKind = Literal["used", "idle", "shared"]
"""``used`` is a team's; ``idle`` nobody's while the node could be used; ``shared`` what no team can help: boot, and
the minimum and increments of a cloud's billing."""


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars and GPU-hours of one owner on one node on one UTC day. Over all lines they are what the nodes cost."""

    kind: LineKind
    pool: str
    node: str
    instance_type: str
    capacity_type: str
    gpu_model: str = ""
    team: str = ""
    project: str = ""
    workload_class: str = ""
    gpu_hours: Decimal = Decimal(0)
    usd: Usd = Decimal(0)


class MeterDay(msgspec.Struct, frozen=True, kw_only=True):
    """What the meter counted on one UTC day, as far as ``until``. Kept under ``meter/<cluster>/<yyyy-mm-dd>``."""

    day: date
    until: datetime
    lines: tuple[CostLine, ...] = ()


class BilledDay(msgspec.Struct, frozen=True, kw_only=True):
    """What a cloud billed for one UTC day: ``resource`` is its id of a node, disk or pool, or empty."""

    day: date
    usd: Usd
    pool: str = ""
    team: str = ""
    resource: str = ""
    service: str = ""
    gpu_hours: Decimal = Decimal(0)


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """What was billed in a period. ``horizon`` is how far the export reaches: usage after it is not in it yet.

    ``findings`` are lines that could not be counted, each with its reason: never $0. Reading the same export again,
    or one with late corrections, gives days that replace those of before.
    """

    source: str
    days: tuple[BilledDay, ...] = ()
    horizon: datetime | None = None
    findings: tuple[Finding, ...] = ()
