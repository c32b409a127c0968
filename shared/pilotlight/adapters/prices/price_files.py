"""Prices from catalogue files."""

from collections.abc import Callable, Sequence
from functools import reduce

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.facts.offers.catalog import Catalog


class FilePrices:
    """Catalogue files in order: a later one adds to the earlier, and replaces its entries, but for prices of another
    region. ``read`` knows addresses."""

    def __init__(self, files: Sequence[str], read: Callable[[str], bytes]) -> None:
        self._files, self._read = files, read

    def catalog(self) -> Catalog:
        catalogs = [read_catalog(self._read(path), path).resolve() for path in self._files]
        return reduce(Catalog.followed_by, catalogs)
