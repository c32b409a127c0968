"""Prices from catalogue files, and the policy's own beside them."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import msgspec

from pilotlight.codec.catalog import read_catalog
from pilotlight.errors import BadInput, BadPolicy
from pilotlight.facts.catalog import Catalog, Price


class FilePrices:
    """Catalogue files in order, a later one adding to and replacing the earlier, then ``overrides``.

    An override is ``"instance type/capacity type": $/h``, as in the policy file.
    """

    def __init__(self, files: Sequence[Path], overrides: Mapping[str, Decimal] | None = None) -> None:
        self._files = files
        self._overrides = overrides or {}

    def catalog(self) -> Catalog:
        catalogs = [read_catalog(_text(path), str(path)) for path in self._files]
        merged = catalogs[0]
        for later in catalogs[1:]:
            merged = msgspec.structs.replace(
                later,
                instance_types={**merged.instance_types, **later.instance_types},
                throughput={**merged.throughput, **later.throughput},
            )
        for name, usd in self._overrides.items():
            merged = _overridden(merged, name, usd)
        return merged


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; name a catalogue file that can be read") from None


def _overridden(catalog: Catalog, name: str, usd: Decimal) -> Catalog:
    instance_type, _, capacity_type = name.rpartition("/")
    known = catalog.instance_types.get(instance_type)
    if known is None or capacity_type not in ("on-demand", "spot", "reserved"):
        raise BadPolicy([f"prices.overrides.{name}: name a known instance type and capacity type, as g5.xlarge/spot"])
    price = Price(usd_per_hour=usd, source="the policy's prices.overrides", date=catalog.as_of.date().isoformat())
    priced = msgspec.structs.replace(known, prices={**known.prices, capacity_type: price})
    return msgspec.structs.replace(catalog, instance_types={**catalog.instance_types, instance_type: priced})
