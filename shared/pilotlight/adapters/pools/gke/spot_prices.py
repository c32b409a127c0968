"""Prices of spot as Compute Engine lists them: the method ``capacityHistory``, one call a machine type and region.

A price holds in all zones of a region. GPUs that are added to an N1 are no part of its history (Compute Engine's
documentation), so those are not asked for. The preemption rate that it tells too is a share of the instances that
stopped, and no rate an hour: survival does not go by it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.gke.google_rest import READ_S, GoogleRest
from pilotlight.errors import Denied, Forbidden
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import Price
from pilotlight.facts.offers.cloud_shop import ToldPrices

ADDED = "n1-"
"""Types whose GPUs are added to them."""
RIGHT = "compute.advice.capacityHistory"


class _Money(msgspec.Struct, frozen=True, rename="camel"):
    currency_code: str = ""
    units: str = "0"
    nanos: int = 0


class _Interval(msgspec.Struct, frozen=True, rename="camel"):
    start_time: datetime | None = None


class _Record(msgspec.Struct, frozen=True, rename="camel"):
    interval: _Interval = _Interval()
    list_price: _Money = _Money()


class _History(msgspec.Struct, frozen=True, rename="camel"):
    price_history: tuple[_Record, ...] = ()


def spot_prices(api: GoogleRest, project: str, region: str, names: Sequence[str], now: datetime) -> ToldPrices:
    """Of these types in a region now; nothing of what is not told, or is told in no dollars."""
    found: dict[str, dict[CapacityType, Price]] = {}
    for name in names:
        if name.startswith(ADDED):
            continue
        try:
            usd = _price(api, project, region, name)
        except Forbidden as no:
            return ToldPrices(prices=found, refused=(f"{RIGHT} is refused, so prices of spot grow old: {no}",))
        except Denied:  # It knows no such type there.
            continue
        if usd is not None:
            source = f"compute.googleapis.com advice/capacityHistory of {region}"
            found[name] = {"spot": Price(usd_per_hour=usd, source=source, date=f"{now:%Y-%m-%d}")}
    return ToldPrices(prices=found)


def _price(api: GoogleRest, project: str, region: str, name: str) -> Decimal | None:
    """The latest that has begun: records come in no order that is told."""
    asked = {
        "types": ["PRICE"],
        "instanceProperties": {"machineType": name, "scheduling": {"provisioningModel": "SPOT"}},
        "locationPolicy": {"location": f"projects/{project}/regions/{region}"},
    }
    path = f"/compute/v1/projects/{project}/regions/{region}/advice/capacityHistory"
    with Deadline(READ_S) as deadline:
        told = api.ask(deadline, "POST", path, _History, msgspec.json.encode(asked)).price_history
    if not told:
        return None
    last = max(told, key=lambda one: one.interval.start_time or datetime.min.replace(tzinfo=UTC)).list_price
    usd = Decimal(last.units) + Decimal(last.nanos) / 1_000_000_000
    return usd if last.currency_code == "USD" and usd > 0 else None
