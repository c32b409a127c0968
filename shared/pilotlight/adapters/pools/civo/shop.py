"""Sizes and quota that Civo's API tells. It tells no price, and there is no quota for GPUs."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pilotlight.adapters.civo_api import CivoApi
from pilotlight.facts.offers.cloud_shop import Assortment, Size, ToldPrices


class _Size(msgspec.Struct, frozen=True):
    name: str
    cpu_cores: int = 0
    gpu_count: int = 0
    gpu_type: str = ""
    ram_mb: int = 0
    disk_gb: int = 0
    selectable: bool = True


class CivoShop:
    """The Shop port of an account in one region."""

    def __init__(self, api: CivoApi) -> None:
        self._api = api

    def sizes(self) -> Sequence[Size]:
        return [_fact(size) for size in self._api.get("/v2/sizes", list[_Size])]

    def prices(self, names: Sequence[str]) -> ToldPrices:
        return ToldPrices(prices={})

    def assortment(self, names: Sequence[str] = ()) -> Assortment:
        found = {size.name: size for size in self.sizes()}
        return Assortment(sizes=found, quota=self._quota())

    def _quota(self) -> Mapping[str, tuple[int, int]]:
        """Limit and usage of the account, by resource: ``{"ram_mb": (limit, usage)}``."""
        found = self._api.get("/v2/quota", dict[str, Any])
        numbers = {key: value for key, value in found.items() if isinstance(value, int)}
        return {
            key.removesuffix("_limit"): (limit, numbers.get(f"{key.removesuffix('_limit')}_usage", 0))
            for key, limit in numbers.items()
            if key.endswith("_limit")
        }


def _fact(size: _Size) -> Size:
    takes = {"cpu_core": size.cpu_cores, "ram_mb": size.ram_mb, "disk_gb": size.disk_gb, "instance_count": 1}
    return Size(
        name=size.name,
        cores=size.cpu_cores,
        gpus=size.gpu_count,
        gpu_model=size.gpu_type,
        memory_mib=size.ram_mb,
        disk_gb=size.disk_gb,
        sold=size.selectable,
        takes={"on-demand": takes},
    )
