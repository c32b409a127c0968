"""A catalogue with what a cloud itself said of prices since: the younger of two prices counts."""

from collections.abc import Mapping

from msgspec.structs import replace

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.catalog import Catalog, InstanceType, Price, ToldPrices


def with_told(catalog: Catalog, told: ToldPrices, region: str = "") -> Catalog:
    """Types that the catalogue has not stay unknown: a price alone is no machine.

    ``region`` is where the cloud was asked: beside what it said there another region's prices count no more.
    """
    types = {name: _priced(kind, told.prices.get(name, {}), region) for name, kind in catalog.instance_types.items()}
    return replace(catalog, instance_types=types)


def _priced(kind: InstanceType, told: Mapping[CapacityType, Price], region: str) -> InstanceType:
    if told and kind.region and region and kind.region != region:
        disks = None if kind.disk_gib else kind.standby_usd_per_hour
        return replace(kind, prices=dict(told), region=region, standby_usd_per_hour=disks)
    younger = {
        sold: price for sold, price in told.items() if sold not in kind.prices or price.date >= kind.prices[sold].date
    }
    return replace(kind, prices={**kind.prices, **younger}) if younger else kind
