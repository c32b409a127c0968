"""Spot as Compute Engine has listed it (the method ``capacityHistory``): a call a machine type and region tells the
price that counts, and one a type and zone what spot cost there of late and how much of it was taken.

GPUs that are added to an N1 are no part of its history (Compute Engine's "View the preemption rate and pricing for Spot
VMs"), so those are not asked for. Its preemption rate of a day is the share of that day's stops which preemption made.
Of machines that would run all day so many are taken, -ln(1 - share) / 24 an hour; where people stop theirs sooner the
share is smaller at the same rate. So it is the least rate, and makes no zone safer than the catalogue says.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import log1p
from statistics import fmean

import msgspec

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.gke.google_rest import READ_S, GoogleRest
from pilotlight.errors import Denied, Forbidden
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import Price
from pilotlight.facts.offers.cloud_shop import SpotPrices, ToldPrices

ADDED = "n1-"
"""Types whose GPUs are added to them."""
RIGHT = "compute.advice.capacityHistory"
WEEK = timedelta(days=7)
MOST_SHARE = 0.99
"""A share of all is taken for this: no day has no end."""


class _Money(msgspec.Struct, frozen=True, rename="camel"):
    currency_code: str = ""
    units: str = "0"
    nanos: int = 0


class _Interval(msgspec.Struct, frozen=True, rename="camel"):
    start_time: datetime = datetime.min.replace(tzinfo=UTC)
    end_time: datetime = datetime.max.replace(tzinfo=UTC)


class _Record(msgspec.Struct, frozen=True, rename="camel"):
    interval: _Interval = _Interval()
    list_price: _Money = _Money()

    @property
    def usd(self) -> Decimal:
        """Its dollars an hour; 0 where it is told in another currency."""
        told = self.list_price
        return (Decimal(told.units) + Decimal(told.nanos) / 1_000_000_000) * (told.currency_code == "USD")


class _Preempted(msgspec.Struct, frozen=True, rename="camel"):
    interval: _Interval = _Interval()
    preemption_rate: float = 0.0


class _History(msgspec.Struct, frozen=True, rename="camel"):
    price_history: tuple[_Record, ...] = ()
    preemption_history: tuple[_Preempted, ...] = ()

    @property
    def usd(self) -> Decimal:
        """The latest price that has begun, 0 without one: records come in no order that is told."""
        last = max(self.price_history, key=lambda one: one.interval.start_time, default=_Record())
        return max(Decimal(0), last.usd)


def spot_prices(api: GoogleRest, project: str, region: str, names: Sequence[str], now: datetime) -> ToldPrices:
    """Of these types in a region now; nothing of what is not told, or is told in no dollars."""
    found: dict[str, dict[CapacityType, Price]] = {}
    for name in names:
        if name.startswith(ADDED):
            continue
        try:
            usd = _history(api, project, region, name, f"regions/{region}", "PRICE").usd
        except Forbidden as no:
            return ToldPrices(prices=found, refused=(f"{RIGHT} is refused, so prices of spot grow old: {no}",))
        except Denied:  # It knows no such type there.
            continue
        if usd:
            source = f"compute.googleapis.com advice/capacityHistory of {region}"
            found[name] = {"spot": Price(usd_per_hour=usd, source=source, date=f"{now:%Y-%m-%d}")}
    return ToldPrices(prices=found)


def with_zones(
    api: GoogleRest, project: str, region: str, told: ToldPrices, places: Sequence[str], now: datetime
) -> ToldPrices:
    """What was told, with the last week of ``places``, each "type/zone": what spot cost, and how much was taken."""
    zones: dict[str, SpotPrices] = {}
    taken: dict[str, float] = {}
    for place in places:
        name, _, zone = place.partition("/")
        if name.startswith(ADDED):
            continue
        try:
            found = _history(api, project, region, name, f"zones/{zone}", "PRICE", "PREEMPTION")
        except Forbidden:  # The price of the region was refused too, and says so.
            break
        except Denied:
            continue
        week = [one.usd for one in found.price_history if one.interval.end_time > now - WEEK and one.usd > 0]
        if usd := found.usd:
            zones[place] = SpotPrices(now=usd, least=min(week, default=usd), most=max(week, default=usd))
        days = [one.preemption_rate for one in found.preemption_history if one.interval.start_time > now - WEEK]
        if days:
            taken[place] = -log1p(-min(MOST_SHARE, fmean(days))) / 24
    return msgspec.structs.replace(told, zones=zones, taken=taken)


def _history(api: GoogleRest, project: str, region: str, name: str, where: str, *types: str) -> _History:
    asked = {
        "types": types,
        "instanceProperties": {"machineType": name, "scheduling": {"provisioningModel": "SPOT"}},
        "locationPolicy": {"location": f"projects/{project}/{where}"},
    }
    path = f"/compute/v1/projects/{project}/regions/{region}/advice/capacityHistory"
    with Deadline(READ_S) as deadline:
        return api.ask(deadline, "POST", path, _History, msgspec.json.encode(asked))
