"""The node pools of a served world."""

from collections.abc import Sequence

import msgspec

from pilotlight.adapters.world_client import WorldClient
from pilotlight.codec.world import Grow, Release
from pilotlight.facts.capacity import PoolState

_one = msgspec.json.Decoder(PoolState)
_all = msgspec.json.Decoder(tuple[PoolState, ...])


class ServedPools:
    """The Pools port over a world's HTTP."""

    def __init__(self, client: WorldClient) -> None:
        self._client = client

    def describe(self) -> Sequence[PoolState]:
        return _all.decode(self._client.call("pools/describe"))

    def grow(self, pool: str, to: int, zone: str = "") -> PoolState:
        return _one.decode(self._client.call("pools/grow", Grow(pool=pool, to=to, zone=zone)))

    def release(self, pool: str, instance: str) -> None:
        self._client.call("pools/release", Release(pool=pool, instance=instance))
