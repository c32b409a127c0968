"""A catalogue with what a cloud itself said of prices since: the younger of two prices counts.

What spot costs by zone is learnt over time: zones are compared by what they usually cost, and not by the hour's price.
Budgets and the meter go by the catalogue's price, which is that of the dearest zone.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from math import log

from msgspec.structs import replace

from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.capacity import CapacityType, Offering
from pilotlight.facts.offers.catalog import Catalog, InstanceType, LivePrices, Price, SpotLearnt
from pilotlight.facts.offers.cloud_shop import SpotPrices
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Finding
from pilotlight.units import Seconds, UsdPerHour

HALF_LIFE_S: Seconds = 3 * 24 * 3600.0
"""What a price was so long ago counts half."""
FORGOTTEN = timedelta(days=30)
"""A zone of which nothing was told for so long is forgotten."""
MOST_WITHIN_AN_HOUR = log(2)
"""Half of what is taken at this rate an hour is gone after one."""
MOST_KEPT = 256
"""So many types and zones are remembered, those told of last."""


def with_told(catalog: Catalog, told: LivePrices, region: str = "") -> Catalog:
    """Types that the catalogue has not stay unknown: a price alone is no machine.

    ``region`` is where the cloud was asked: what it said holds there; another region's prices hold in that one.
    """
    here = {name: kind for name in catalog.instance_types if (kind := catalog.sold_in(region, name)) is not None}
    types = {name: _priced(kind, told.prices.get(name, {}), region) for name, kind in here.items()}
    return catalog.followed_by(replace(catalog, instance_types=types))


def _priced(kind: InstanceType, told: Mapping[CapacityType, Price], region: str) -> InstanceType:
    if told and kind.region and region and kind.region != region:
        disks = None if kind.disk_gib else kind.standby_usd_per_hour
        return replace(kind, prices=dict(told), region=region, standby_usd_per_hour=disks)
    younger = {
        sold: price for sold, price in told.items() if sold not in kind.prices or price.date >= kind.prices[sold].date
    }
    return replace(kind, prices={**kind.prices, **younger}) if younger else kind


def learnt(known: Mapping[str, SpotLearnt], told: Mapping[str, SpotPrices], now: datetime) -> dict[str, SpotLearnt]:
    """Spot's prices by "type/zone", as they are known once these were told."""
    fresh = {name: _learnt(known.get(name), prices, now) for name, prices in told.items()}
    kept = {name: one for name, one in known.items() if now - one.at < FORGOTTEN} | fresh
    return {name: kept[name] for name in sorted(sorted(kept), key=lambda name: kept[name].at, reverse=True)[:MOST_KEPT]}


def _learnt(old: SpotLearnt | None, told: SpotPrices, now: datetime) -> SpotLearnt:
    usual = told.now
    if old is not None:
        keeps = Decimal(repr(0.5 ** (max(0.0, (now - old.at).total_seconds()) / HALF_LIFE_S)))
        usual = (old.usual * keeps + told.now * (1 - keeps)).quantize(Decimal("0.000001"))
    return SpotLearnt(at=now, now=told.now, least=told.least, most=told.most, usual=usual)


def told_offerings(
    policy: Policy, catalog: Catalog, told: LivePrices, region: str
) -> tuple[tuple[Offering, ...], tuple[Finding, ...]]:
    """Offerings at what was told: a cloud's prices, spot's by zone, and a bill's of reserved pools."""
    offered, findings = offerings(policy, with_told(catalog, told, region) if told.prices else catalog, region)
    if told.zones:
        offered = with_zones(offered, told.zones)
    if told.soon_taken or told.taken:
        offered = tuple(_as_told(one, told) for one in offered)
    return tuple(_committed(one, told.committed.get(one.pool)) for one in offered), findings


def _as_told(offering: Offering, told: LivePrices) -> Offering:
    """Spot of which most is taken within an hour goes at ln 2 an hour, or more, other spot at the least rate that its
    cloud tells of it; what is learnt starts there."""
    from pilotlight.decide.offers.spot_lifetimes import PRIOR_AN_HOUR, place

    name = place(offering.instance_type, offering.zone)
    least = MOST_WITHIN_AN_HOUR if name in told.soon_taken else told.taken.get(name, 0.0)
    if offering.capacity_type != "spot" or least <= (offering.interruptions_per_hour or PRIOR_AN_HOUR):
        return offering
    return replace(offering, interruptions_per_hour=least)


def _committed(offering: Offering, usd: UsdPerHour | None) -> Offering:
    if usd is None or offering.capacity_type != "reserved":
        return offering
    return replace(offering, committed_usd_per_hour=usd * offering.gpus)


def with_zones(offered: Sequence[Offering], zones: Mapping[str, SpotLearnt]) -> tuple[Offering, ...]:
    """The offerings, spot in a named zone with what it usually costs there."""
    return tuple(_with_zone(one, zones.get(f"{one.instance_type}/{one.zone}")) for one in offered)


def _with_zone(offering: Offering, known: SpotLearnt | None) -> Offering:
    if known is None or offering.capacity_type != "spot" or not offering.zone:
        return offering
    return replace(offering, usual_usd_per_hour=known.usual)
