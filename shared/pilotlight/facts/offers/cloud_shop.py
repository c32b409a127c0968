"""Sizes that a cloud's account may rent in its region, and what its quota leaves, in words that no cloud owns."""

from collections.abc import Mapping

import msgspec

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import Price
from pilotlight.units import UsdPerHour


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """An instance type of a region. ``gpu_memory_gib`` is that of one device, 0 where the cloud does not tell.

    ``zones`` are those that have it; empty where the region has none, or does not tell. ``sold`` is false where it
    cannot be chosen now. ``takes`` is what one node takes of the account's quota, by the quota's own names.
    """

    name: str
    cores: int = 0
    gpus: int = 0
    gpu_model: str = ""
    gpu_memory_gib: int = 0
    memory_mib: int = 0
    disk_gb: int = 0
    zones: tuple[str, ...] = ()
    sold: bool = True
    takes: Mapping[CapacityType, Mapping[str, int]] = {}


class SpotPrices(msgspec.Struct, frozen=True, kw_only=True):
    """Of a type in a zone: dollars an hour now, and the least and most since some days ago."""

    now: UsdPerHour
    least: UsdPerHour
    most: UsdPerHour


class ToldPrices(msgspec.Struct, frozen=True, kw_only=True):
    """Prices of sizes as their cloud tells them, and why it does not tell others: rights that the account lacks.

    ``soon_taken`` are types in zones, "size/zone", of whose spot it says that most is taken within an hour; ``taken``
    has by those the least share an hour that it says is taken, ``zones`` what spot costs there.
    """

    prices: Mapping[str, Mapping[CapacityType, Price]]
    zones: Mapping[str, SpotPrices] = {}
    taken: Mapping[str, float] = {}
    soon_taken: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Assortment(msgspec.Struct, frozen=True, kw_only=True):
    """A region's sizes by name, and by resource what the account may have and has: ``{"ram_mb": (limit, usage)}``."""

    sizes: Mapping[str, Size]
    quota: Mapping[str, tuple[int, int]]
