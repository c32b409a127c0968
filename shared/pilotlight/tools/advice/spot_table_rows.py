"""Worth of spot of each type and zone for one job: how often it is up, how long it lives, dollars a useful hour.

A zone's own record (when spot was up there) counts where one is given, else what the cluster has lived through, else
the catalogue's rate. Useful hours are Daly's (``decide.offers.spot_economics``).
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain, groupby, repeat
from math import inf, log
from typing import NamedTuple

import msgspec

from pilotlight.decide.offers.spot_economics import TypePrices, safe_for_spot, stretch, usd_per_useful_hour
from pilotlight.decide.offers.spot_lifetimes import PRIOR_AN_HOUR, place, survival
from pilotlight.decide.offers.spot_share import SpotShares
from pilotlight.facts.capacity import Offering
from pilotlight.facts.offers.cloud_shop import SpotPrices
from pilotlight.facts.offers.spot_history import Lives
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.units import HOUR, MILLI_PER_GPU, Seconds, UsdPerHour

SEEN_S: Seconds = 7 * 24 * HOUR
"""So much of the end of a record says what spot is like now."""


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


class ZoneLife(NamedTuple):
    """A zone's life: the share of the time that it was up, how long it stays in hours, by how many times."""

    up: float | None
    life_h: float
    sample: int
    rate: float
    source: str


def spot_rows(
    offerings: Sequence[Offering],
    lives: Mapping[str, Lives],
    records: Sequence[ZoneHistory],
    prices: Mapping[str, SpotPrices],
    job: SpotJob,
) -> tuple[SpotRow, ...]:
    """A row for every spot offering in each of its zones, the cheapest useful hour first. ``prices`` by "type/zone"."""
    rows = [
        _row(offering, zone, record, lives, prices, job)
        for offering in offerings
        if offering.capacity_type == "spot"
        for zone, record in _zones(offering, records, prices)
    ]
    return tuple(sorted(rows, key=lambda row: (row.usd_per_useful_hour or Decimal("Infinity"), row.pool, row.zone)))


def share_rows(shares: SpotShares) -> tuple[SpotShare, ...]:
    """A row for each share that a policy names."""
    return tuple(
        SpotShare(
            kind=kind,
            name=name,
            most=share,
            gpus=shares.asked[kind, name] / MILLI_PER_GPU,
            spot_gpus=shares.on_spot[kind, name] / MILLI_PER_GPU,
        )
        for (kind, name), share in sorted(shares.limits.items())
    )


def _zones(
    offering: Offering, records: Sequence[ZoneHistory], prices: Mapping[str, SpotPrices]
) -> list[tuple[str, ZoneHistory | None]]:
    """The zones of an offering, with their records; one whose zone is not said is in each that something is told of."""
    if offering.zone:
        return [(offering.zone, next((record for record in records if record.zone == offering.zone), None))]
    told = {name.partition("/")[2] for name in prices if name.partition("/")[0] == offering.instance_type}
    by_zone = dict.fromkeys(sorted(told)) | {record.zone: record for record in records}
    return list(by_zone.items()) or [("", None)]


def _row(
    offering: Offering,
    zone: str,
    record: ZoneHistory | None,
    lives: Mapping[str, Lives],
    prices: Mapping[str, SpotPrices],
    job: SpotJob,
) -> SpotRow:
    found = _recorded(record, offering.interruptions_per_hour) if record else _lived(offering, zone, lives)
    told = prices.get(place(offering.instance_type, zone))
    now = told.now if told else offering.usd_per_hour
    verdict = safe_for_spot(
        job.run_s,
        found.rate,
        prices=TypePrices(now, offering.on_demand_usd_per_hour),
        checkpoint_s=job.checkpoint_s,
        takes_s=job.takes_s,
        restart_s=offering.boot_s,
    )
    every_h, takes_h = (job.checkpoint_s or job.run_s) / HOUR, job.takes_s / HOUR if job.checkpoint_s else 0.0
    factor = stretch(found.rate, every_h, takes_h, offering.boot_s / HOUR)
    return SpotRow(
        pool=offering.pool,
        instance_type=offering.instance_type,
        zone=zone,
        usd_per_hour=now,
        least=told.least if told else None,
        most=told.most if told else None,
        on_demand_usd_per_hour=offering.on_demand_usd_per_hour,
        up=found.up,
        life_h=found.life_h,
        sample=found.sample,
        source=found.source,
        usd_per_useful_hour=None if factor == inf else usd_per_useful_hour(now, factor),
        safe=verdict.safe,
        why=verdict.why,
    )


def _lived(offering: Offering, zone: str, lives: Mapping[str, Lives]) -> ZoneLife:
    """Life of the zone as the cluster has lived through it; where that is nothing, the catalogue's rate."""
    found = survival(lives, offering.instance_type, zone, offering.interruptions_per_hour)
    known = place(offering.instance_type, zone) in lives
    source = "lived through here" if known else "the catalogue"
    return ZoneLife(found.up, log(2) / found.rate, round(found.losses), found.rate, source)


def _recorded(record: ZoneHistory, prior: float) -> ZoneLife:
    """Life of the zone by the last days of a record. A spell that was cut by its end or beginning has no length."""
    ticks = list(chain.from_iterable(repeat(value > 0, count) for value, count in record.runs))
    ticks = ticks[-max(1, round(SEEN_S / record.gap_s)) :]
    spells = [(up, sum(1 for _ in same)) for up, same in groupby(ticks)]
    whole = sorted(count * record.gap_s / HOUR for up, count in spells[1:-1] if up)
    losses = sum(up for up, _ in spells[:-1])
    hours = sum(ticks) * record.gap_s / HOUR
    rate = (losses + 1) / (hours + 1 / (prior or PRIOR_AN_HOUR))
    life_h = whole[len(whole) // 2] if whole else log(2) / rate
    return ZoneLife(sum(ticks) / len(ticks), life_h, len(whole), rate, "its record")
