"""Shop of a region: EC2's types, zones and spot prices, the Price List's on demand, Service Quotas' vCPUs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from pilotlight import typed_json
from pilotlight.adapters.aws_api.services import JsonApi, QueryApi, members, pages
from pilotlight.adapters.pools.asg.service_quotas import quota_usage, read_quotas
from pilotlight.errors import Forbidden
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import DiskPrice, Price
from pilotlight.facts.offers.cloud_shop import Assortment, Size, SpotPrices, ToldPrices
from pilotlight.ports.state import Clock

GPU_FAMILIES = ("g*", "p*")
"""What the names of instance types with GPUs begin with."""
AT_ONCE = 100
"""EC2 tells of so many named types in one call."""

LINUX = "Linux/UNIX"
PRICES_REGION = "us-east-1"
"""The Price List of every region is asked for here."""
FILTERS: Mapping[str, str] = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
"""What tells one price of a type from its others: Linux without a licence, on a shared machine, not reserved."""


class _Memory(msgspec.Struct, frozen=True):
    sizeInMiB: int = 0


class _Gpu(msgspec.Struct, frozen=True):
    name: str = ""
    count: int = 0
    memoryInfo: _Memory = _Memory()


class _Gpus(msgspec.Struct, frozen=True):
    gpus: tuple[_Gpu, ...] = ()


class _Cpus(msgspec.Struct, frozen=True):
    defaultVCpus: int = 0


class _Disks(msgspec.Struct, frozen=True):
    totalSizeInGB: int = 0


class _Type(msgspec.Struct, frozen=True):
    instanceType: str
    vCpuInfo: _Cpus = _Cpus()
    memoryInfo: _Memory = _Memory()
    gpuInfo: _Gpus = _Gpus()
    instanceStorageInfo: _Disks = _Disks()


class _Page(msgspec.Struct, frozen=True):
    nextToken: str = ""


class _Types(_Page, frozen=True):
    instanceTypeSet: tuple[_Type, ...] = ()


class _Offer(msgspec.Struct, frozen=True):
    instanceType: str
    location: str


class _Offers(_Page, frozen=True):
    instanceTypeOfferingSet: tuple[_Offer, ...] = ()


class _SpotPrice(msgspec.Struct, frozen=True):
    instanceType: str
    spotPrice: Decimal
    timestamp: datetime
    availabilityZone: str = ""


class _SpotPrices(_Page, frozen=True):
    spotPriceHistorySet: tuple[_SpotPrice, ...] = ()


class _Dimension(msgspec.Struct, frozen=True):
    unit: str = ""
    pricePerUnit: dict[str, Decimal] = {}


class _Term(msgspec.Struct, frozen=True):
    priceDimensions: dict[str, _Dimension] = {}


class _Terms(msgspec.Struct, frozen=True):
    OnDemand: dict[str, _Term] = {}


class _Product(msgspec.Struct, frozen=True):
    terms: _Terms = _Terms()


class _Listed(msgspec.Struct, frozen=True):
    PriceList: tuple[str, ...] = ()
    NextToken: str = ""


_product = typed_json.decoder(_Product, strict=False)


class AsgShop:
    """The Shop port of a region."""

    def __init__(self, ec2: QueryApi, pricing: JsonApi, quotas: JsonApi, region: str, clock: Clock) -> None:
        self._ec2, self._pricing, self._quotas, self._region, self._clock = ec2, pricing, quotas, region, clock

    def prices(self, names: Sequence[str]) -> ToldPrices:
        """On demand as the Price List has them; spot's of the dearest zone that has the type: no node costs more. Each
        needs a right of its own."""
        now = self._clock.now()
        asked: Mapping[CapacityType, tuple[str, Callable[[], Mapping[str, Price]]]] = {
            "on-demand": ("pricing:GetProducts", lambda: _on_demand(self._pricing, self._region, names, now)),
            "spot": ("ec2:DescribeSpotPriceHistory", lambda: self._spot(names, now)),
        }
        found: dict[str, dict[CapacityType, Price]] = {}
        refused: list[str] = []
        for kind, (right, ask) in asked.items():
            try:
                for name, price in ask().items():
                    found.setdefault(name, {})[kind] = price
            except Forbidden as no:
                refused.append(f"{right} is refused, so prices of {kind} grow old: {no}")
        return ToldPrices(prices=found, refused=tuple(refused))

    def disk_prices(self, names: Sequence[str]) -> Mapping[str, DiskPrice]:
        try:
            return _disks(self._pricing, self._region, names, self._clock.now())
        except Forbidden:
            return {}

    def spot_prices(self, names: Sequence[str], since: datetime) -> Mapping[str, SpotPrices]:
        """Spot prices of Linux in each zone since then; the price that stood at that moment counts too."""
        told: dict[str, list[_SpotPrice]] = {}
        for one in self._history(names, since):
            told.setdefault(f"{one.instanceType}/{one.availabilityZone}", []).append(one)
        return {
            name: SpotPrices(
                now=max(prices, key=lambda one: one.timestamp).spotPrice,
                least=min(one.spotPrice for one in prices),
                most=max(one.spotPrice for one in prices),
            )
            for name, prices in told.items()
        }

    def _history(self, names: Sequence[str], since: datetime) -> Sequence[_SpotPrice]:
        asked = {
            **members("InstanceType", names, ""),
            "ProductDescription.1": LINUX,
            "StartTime": f"{since:%Y-%m-%dT%H:%M:%SZ}",
        }
        found = pages(self._ec2.read, "DescribeSpotPriceHistory", _SpotPrices, asked) if names else []
        return [one for page in found for one in page.spotPriceHistorySet]

    def _spot(self, names: Sequence[str], now: datetime) -> dict[str, Price]:
        latest: dict[tuple[str, str], _SpotPrice] = {}
        for one in self._history(names, now):
            key = one.instanceType, one.availabilityZone
            if key not in latest or one.timestamp > latest[key].timestamp:
                latest[key] = one
        dearest: dict[str, _SpotPrice] = {}
        for one in latest.values():
            if one.instanceType not in dearest or one.spotPrice > dearest[one.instanceType].spotPrice:
                dearest[one.instanceType] = one
        return {
            name: Price(usd_per_hour=one.spotPrice, source=f"EC2 {one.availabilityZone}", date=f"{now:%Y-%m-%d}")
            for name, one in dearest.items()
        }

    def sizes(self) -> Sequence[Size]:
        return self._sizes(GPU_FAMILIES)

    def assortment(self, names: Sequence[str] = ()) -> Assortment:
        named = [names[at : at + AT_ONCE] for at in range(0, len(names), AT_ONCE)] or [GPU_FAMILIES]
        sizes = {size.name: size for some in named for size in self._sizes(some)}
        try:
            quotas = read_quotas(self._quotas)
        except Forbidden:  # A role without that right is told nothing of quotas.
            return Assortment(sizes=sizes, quota={})
        taking = {name: replace(size, takes=quotas.takes(name, size.cores)) for name, size in sizes.items()}
        return Assortment(sizes=taking, quota=quota_usage(self._ec2, quotas, GPU_FAMILIES))

    def _sizes(self, like: Sequence[str]) -> list[Size]:
        """Those whose name is one of these, or begins so. A type that no zone has is not sold."""
        wanted = {"Filter.1.Name": "instance-type", **members("Filter.1.Value", like, "")}
        zones: dict[str, set[str]] = {}
        offers = {**wanted, "LocationType": "availability-zone"}
        for page in pages(self._ec2.read, "DescribeInstanceTypeOfferings", _Offers, offers):
            for offer in page.instanceTypeOfferingSet:
                zones.setdefault(offer.instanceType, set()).add(offer.location)
        types = [
            kind
            for page in pages(self._ec2.read, "DescribeInstanceTypes", _Types, wanted)
            for kind in page.instanceTypeSet
        ]
        return [_fact(kind, tuple(sorted(zones.get(kind.instanceType, ())))) for kind in types]


def _fact(kind: _Type, zones: tuple[str, ...]) -> Size:
    gpus = kind.gpuInfo.gpus
    return Size(
        name=kind.instanceType,
        cores=kind.vCpuInfo.defaultVCpus,
        gpus=sum(gpu.count for gpu in gpus),
        gpu_model=gpus[0].name if gpus else "",
        gpu_memory_gib=gpus[0].memoryInfo.sizeInMiB // 1024 if gpus else 0,
        memory_mib=kind.memoryInfo.sizeInMiB,
        disk_gb=kind.instanceStorageInfo.totalSizeInGB,
        zones=zones,
        sold=bool(zones),
    )


def _on_demand(pricing: JsonApi, region: str, names: Sequence[str], now: datetime) -> dict[str, Price]:
    """The dollars of an hour of each type that the list has. Two figures for one type are none: the dearer counts."""
    found: dict[str, Price] = {}
    for name in names:
        wanted = {"instanceType": name, **FILTERS}
        usd = max(_dollars(pricing, {"regionCode": region, **wanted}, "Hrs"), default=None)
        if usd:
            found[name] = Price(usd_per_hour=usd, source=f"AWS Price List {region}", date=f"{now:%Y-%m-%d}")
    return found


def _disks(pricing: JsonApi, region: str, names: Sequence[str], now: datetime) -> dict[str, DiskPrice]:
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
    for page in pages(pricing.read, "GetProducts", _Listed, asked):
        for text in page.PriceList:
            for term in _product.decode(text).terms.OnDemand.values():
                for each in term.priceDimensions.values():
                    if each.unit == unit and "USD" in each.pricePerUnit:
                        yield each.pricePerUnit["USD"].normalize()
