"""Pools of a cluster where Karpenter alone buys: no cloud is asked, and none is bought from."""

from collections.abc import Sequence
from typing import NoReturn

from pilotlight.errors import BadRequest
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.ports.clouds import OPEN, Gate


class KarpenterPools:
    """The Pools port of such a cluster."""

    cloud = ""

    def describe(self) -> Sequence[PoolState]:
        return ()

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        return None

    def grow(self, pool: str, to: int, zone: str = "", *, gate: Gate = OPEN, token: str = "") -> PoolState:
        _refuse(pool)

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        _refuse(pool)


def _refuse(pool: str) -> NoReturn:
    raise BadRequest(f"pool {pool}: PILOTLIGHT_POOLS is karpenter, and buys nothing; name its cloud there")
