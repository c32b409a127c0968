"""The node pools of a served world."""

from collections.abc import Sequence
from functools import partial

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.world_client import WorldClient
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate

_one = typed_json.decoder(PoolState)
_seen: msgspec.json.Decoder[InstanceState | None] = typed_json.decoder(InstanceState | None)
_all = typed_json.decoder(tuple[PoolState, ...])


class ServedPools:
    """The Pools port over a world's HTTP."""

    cloud = "world"

    def __init__(self, client: WorldClient) -> None:
        self._client = client

    def describe(self) -> Sequence[PoolState]:
        return _all.decode(self._client.call("pools/describe"))

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        return _seen.decode(self._client.call("pools/instance", pool=pool, instance=instance))

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        now = next((state for state in self.describe() if state.name == pool), None)
        if now is not None and now.desired >= to:
            return now
        to = min(to, (now.desired if now else 0) + most)
        return _one.decode(self._client.change("pools/grow", partial(gate, to), pool=pool, to=to, zone=zone))

    def stop(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        seen = self.instance(pool, instance)
        if seen is not None and seen.there:
            self._client.change("pools/stop", gate, pool=pool, instance=instance)

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        seen = self.instance(pool, instance)
        if (seen is not None and seen.there) or self._stopped(pool, instance):
            self._client.change("pools/release", gate, pool=pool, instance=instance)

    def _stopped(self, pool: str, instance: str) -> bool:
        """True where an instance stands by."""
        return any(state.name == pool and instance in state.stopped for state in self.describe())
