"""AWS's Price List: what a type costs on demand in a region, for Linux with shared tenancy, and what disks cost."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

from pilotlight.adapters.aws_api.services import JsonApi
from pilotlight.facts.offers.catalog import DiskPrice, Price

REGION = "us-east-1"
"""The Price List of every region is asked for here."""
FILTERS: Mapping[str, str] = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
"""What tells one price of a type from its others: Linux without a licence, on a shared machine, not reserved."""


class _Dimension(msgspec.Struct, frozen=True):
    unit: str = ""
    pricePerUnit: dict[str, Decimal] = {}


class _Term(msgspec.Struct, frozen=True):
    priceDimensions: dict[str, _Dimension] = {}


class _Terms(msgspec.Struct, frozen=True):
    OnDemand: dict[str, _Term] = {}


class _Product(msgspec.Struct, frozen=True):
    terms: _Terms = _Terms()


class _Page(msgspec.Struct, frozen=True):
    PriceList: tuple[str, ...] = ()
    NextToken: str = ""


_product = msgspec.json.Decoder(_Product, strict=False)


def on_demand(pricing: JsonApi, region: str, names: Sequence[str], now: datetime) -> dict[str, Price]:
    """The dollars of an hour of each type that the list has. Two figures for one type are none: the dearer counts."""
    found: dict[str, Price] = {}
    for name in names:
        wanted = {"instanceType": name, **FILTERS}
        usd = max(_dollars(pricing, {"regionCode": region, **wanted}, "Hrs"), default=None)
        if usd:
            found[name] = Price(usd_per_hour=usd, source=f"AWS Price List {region}", date=f"{now:%Y-%m-%d}")
    return found


def disks(pricing: JsonApi, region: str, names: Sequence[str], now: datetime) -> dict[str, DiskPrice]:
    """The dollars of a GiB and month of each kind of volume that the list has, as "gp3"."""
    found: dict[str, DiskPrice] = {}
    for name in names:
        wanted = {"regionCode": region, "productFamily": "Storage", "volumeApiName": name}
        usd = max(_dollars(pricing, wanted, "GB-Mo"), default=None)
        if usd:
            source = f"AWS Price List {region}"
            found[name] = DiskPrice(usd_per_gib_month=usd, source=source, date=f"{now:%Y-%m-%d}")
    return found


def _dollars(pricing: JsonApi, wanted: Mapping[str, str], unit: str) -> Iterator[Decimal]:
    asked: dict[str, object] = {
        "ServiceCode": "AmazonEC2",
        "Filters": [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
    }
    while True:
        page = pricing.read("GetProducts", _Page, asked)
        for text in page.PriceList:
            for term in _product.decode(text).terms.OnDemand.values():
                for each in term.priceDimensions.values():
                    if each.unit == unit and "USD" in each.pricePerUnit:
                        yield each.pricePerUnit["USD"].normalize()
        if not page.NextToken:
            return
        asked = {**asked, "NextToken": page.NextToken}
