"""Prices from catalogue files."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from pilotlight.codec.catalog import read_catalog
from pilotlight.errors import BadInput
from pilotlight.facts.catalog import Catalog


class FilePrices:
    """Catalogue files in order: a later one adds to the earlier, and replaces its entries."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files

    def catalog(self) -> Catalog:
        catalogs = [read_catalog(_text(path), str(path)) for path in self._files]
        merged = catalogs[0]
        for later in catalogs[1:]:
            merged = msgspec.structs.replace(
                later,
                instance_types={**merged.instance_types, **later.instance_types},
                throughput={**merged.throughput, **later.throughput},
            )
        return merged


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; name a catalogue file that can be read") from None
