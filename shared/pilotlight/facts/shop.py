"""What a cloud's account may rent: the sizes of its region and what its quota leaves."""

from collections.abc import Mapping

import msgspec


class Size(msgspec.Struct, frozen=True):
    """An instance type of a region, in the words of Civo's API, which tells no price."""

    name: str
    cpu_cores: int = 0
    gpu_count: int = 0
    gpu_type: str = ""
    ram_mb: int = 0
    disk_gb: int = 0
    selectable: bool = True


class Assortment(msgspec.Struct, frozen=True, kw_only=True):
    """A region's sizes by name, and by resource what the account may have and has: ``{"ram_mb": (limit, usage)}``."""

    sizes: Mapping[str, Size]
    quota: Mapping[str, tuple[int, int]]
