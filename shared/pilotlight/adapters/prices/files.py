"""Prices from catalogue files."""

from collections.abc import Callable, Sequence

import msgspec

from pilotlight.codec.catalog import read_catalog
from pilotlight.facts.catalog import Catalog, speeds


class FilePrices:
    """Catalogue files in order: a later one adds to the earlier, and replaces its entries. ``read`` knows addresses."""

    def __init__(self, files: Sequence[str], read: Callable[[str], bytes]) -> None:
        self._files, self._read = files, read

    def catalog(self) -> Catalog:
        catalogs = [read_catalog(self._read(path), path).resolved() for path in self._files]
        merged = catalogs[0]
        for later in catalogs[1:]:
            merged = msgspec.structs.replace(
                later,
                instance_types={**merged.instance_types, **later.instance_types},
                throughput=speeds(merged.throughput, later.throughput),
            )
        return merged
