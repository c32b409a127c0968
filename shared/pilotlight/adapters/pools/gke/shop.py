"""Machine types that a location rents, and spot's prices. Of quotas, which are told by regions, none is told."""

from collections.abc import Sequence
from urllib.parse import quote, urlencode

import msgspec

from pilotlight.adapters.pools.gke.google_rest import GoogleRest
from pilotlight.adapters.pools.gke.spot_odds import with_odds
from pilotlight.adapters.pools.gke.spot_prices import spot_prices, with_zones
from pilotlight.facts.offers.cloud_shop import Assortment, Size, ToldPrices
from pilotlight.ports.state import Clock

PAGE = 500


class _Accelerator(msgspec.Struct, frozen=True, rename="camel"):
    guest_accelerator_type: str = ""
    guest_accelerator_count: int = 0


class _Type(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    guest_cpus: int = 0
    memory_mb: int = 0
    accelerators: tuple[_Accelerator, ...] = ()
    zone: str = ""


class _Scope(msgspec.Struct, frozen=True, rename="camel"):
    machine_types: tuple[_Type, ...] = ()


class _Types(msgspec.Struct, frozen=True, rename="camel"):
    items: dict[str, _Scope] = {}
    next_page_token: str = ""


class GkeShop:
    """The Shop port of a project in one location, a zone of the ``region`` or the region itself."""

    def __init__(self, api: GoogleRest, project: str, location: str, region: str, clock: Clock) -> None:
        self._api, self._project, self._location, self._region, self._clock = api, project, location, region, clock

    def sizes(self) -> Sequence[Size]:
        return list(self.assortment().sizes.values())

    def prices(self, names: Sequence[str]) -> ToldPrices:
        """Spot's alone: what is paid on demand nobody tells an account."""
        return spot_prices(self._api, self._project, self._region, names, self._clock.now())

    def with_odds(self, told: ToldPrices, places: Sequence[str]) -> ToldPrices:
        told = with_zones(self._api, self._project, self._region, told, places, self._clock.now())
        return with_odds(self._api, self._project, self._region, told, places)

    def assortment(self, names: Sequence[str] = ()) -> Assortment:
        """Without names, every type that has a GPU built in. GPUs that are added to an N1 are no part of its type."""
        wanted = " OR ".join(f"(name = {name})" for name in names) or "accelerators.guestAcceleratorCount > 0"
        asked = {"filter": wanted, "maxResults": str(PAGE)}
        found: dict[str, Size] = {}
        while True:
            path = f"/compute/v1/projects/{self._project}/aggregated/machineTypes"
            page = self._api.read(f"{path}?{urlencode(asked, quote_via=quote)}", _Types)
            here = [one for scope in page.items.values() for one in scope.machine_types if self._is_here(one.zone)]
            found |= {one.name: _size(one) for one in here}
            if not page.next_page_token:
                return Assortment(sizes=found, quota={})
            asked["pageToken"] = page.next_page_token

    def _is_here(self, zone: str) -> bool:
        name = zone.rpartition("/")[2]
        return name == self._location or name.rpartition("-")[0] == self._location


def _size(one: _Type) -> Size:
    first = one.accelerators[0] if one.accelerators else _Accelerator()
    return Size(
        name=one.name,
        cores=one.guest_cpus,
        gpus=first.guest_accelerator_count,
        gpu_model=first.guest_accelerator_type,
        memory_mib=one.memory_mb,
        disk_gb=0,
        sold=True,
        takes={},
    )
