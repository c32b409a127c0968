"""Civo's node pools: raised by their absolute count, lowered by one named instance only.

A pool's PUT replaces its labels and taints too (``"taints": null`` may clear them): what it has now is sent back.
Civo has no operation ids and no versions: after a call whose outcome is unknown, only a read tells.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Any

import msgspec

from pilotlight.adapters.civo_api import CivoApi, CivoRefusal
from pilotlight.errors import BadRequest, LastNode
from pilotlight.facts.capacity import Booting, PoolState
from pilotlight.facts.shop import Shop, Size
from pilotlight.ports import Clock

GONE = ("DELETING", "DELETED")
_GONE_CODES = ("database_cluster_pool_instance_not_found", "instance_not_found")


class _Instance(msgspec.Struct, frozen=True):
    id: str
    status: str = ""
    created_at: str | None = None


class _Pool(msgspec.Struct, frozen=True):
    """A pool as it is. Passwords and tokens of its instances are not even read."""

    id: str
    count: int = 0
    instances: list[_Instance] | None = None
    labels: dict[str, str] | None = None
    taints: list[dict[str, Any]] | None = None
    public_ip_node_pool: bool | None = None

    @property
    def live(self) -> list[_Instance]:
        return [i for i in self.instances or () if i.status.upper() not in GONE]


class _Required(msgspec.Struct, frozen=True):
    id: str
    count: int = 0


class _Cluster(msgspec.Struct, frozen=True):
    id: str
    pools: list[_Pool] | None = None
    required_pools: list[_Required] | None = None


def sizes(api: CivoApi) -> Sequence[Size]:
    """The region's instance types."""
    return api.get("/v2/sizes", list[Size])


class CivoPools:
    """The Pools port of one Civo cluster. ``names`` are Civo's pool ids by the policy's names."""

    def __init__(self, api: CivoApi, cluster: str, names: Mapping[str, str], clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._path = f"/v2/kubernetes/clusters/{cluster}"
        self._names = dict(names)
        self._lock = Lock()

    def describe(self) -> Sequence[PoolState]:
        """Every pool of the policy that Civo has. Instances that are nodes already are among those on their way."""
        pools, desired = self._read()
        return tuple(
            self._state(name, pools[pool], desired[pool]) for name, pool in self._names.items() if pool in pools
        )

    def grow(self, pool: str, to: int, zone: str = "") -> PoolState:
        with self._lock:
            now, desired = self._find(pool)
            if desired >= to:
                return self._state(pool, now, desired)
            return self._state(pool, self._put(now, to), to)

    def release(self, pool: str, instance: str) -> None:
        with self._lock:
            now, desired = self._find(pool)
            if instance not in [i.id for i in now.live]:
                return
            try:
                self._api.delete(f"{self._path}/pools/{now.id}/instances/{instance}")
            except CivoRefusal as no:
                if no.code in _GONE_CODES:
                    return
                if len(now.live) == 1 and no.status != 404:
                    raise LastNode(f"{no}: Civo keeps the last node of pool {pool}") from None
                raise
            self._lower(pool, instance, desired)

    def shop(self) -> Shop:
        """What the account may rent."""
        return Shop(sizes={size.name: size for size in sizes(self._api)}, quota=self.quota())

    def quota(self) -> Mapping[str, tuple[int, int]]:
        """What the account may have and has, by resource: ``{"ram_mb": (limit, usage)}``. There is none for GPUs."""
        found = self._api.get("/v2/quota", dict[str, Any])
        numbers = {key: value for key, value in found.items() if isinstance(value, int)}
        return {
            key.removesuffix("_limit"): (limit, numbers.get(f"{key.removesuffix('_limit')}_usage", 0))
            for key, limit in numbers.items()
            if key.endswith("_limit")
        }

    def _read(self) -> tuple[dict[str, _Pool], dict[str, int]]:
        """The pools as they are and their desired sizes, by Civo's ids."""
        cluster = self._api.get(self._path, _Cluster)
        found = cluster.pools if cluster.pools is not None else self._api.get(f"{self._path}/pools", list[_Pool])
        required = {r.id: r.count for r in cluster.required_pools or ()}
        return {p.id: p for p in found}, {p.id: required.get(p.id, p.count) for p in found}

    def _find(self, name: str) -> tuple[_Pool, int]:
        pools, desired = self._read()
        id_ = self._names.get(name, "")
        if id_ not in pools:
            raise BadRequest(
                f"Civo has no pool {id_ or name} in this cluster; create it, or mend pools.{name}.cluster_pool"
            )
        return pools[id_], desired[id_]

    def _put(self, now: _Pool, count: int) -> _Pool:
        body: dict[str, Any] = {"id": now.id, "count": count, "labels": now.labels or {}, "taints": now.taints or []}
        if now.public_ip_node_pool is not None:
            body["public_ip_node_pool"] = now.public_ip_node_pool
        return self._api.put(f"{self._path}/pools/{now.id}", body, _Pool)

    def _lower(self, name: str, instance: str, before: int) -> None:
        """See that a deletion took one from the desired size, so that Civo does not bring the instance back.

        A count is only ever lowered to what is left, once the instance itself is not: then there is no other that Civo
        could choose to take.
        """
        now, desired = self._find(name)
        if instance in [i.id for i in now.live]:
            return
        if desired < before or len(now.live) >= desired:
            return
        try:
            self._put(now, len(now.live))
        except CivoRefusal as no:
            if now.live:
                raise
            raise LastNode(f"{no}: Civo keeps the count of pool {name}, and brings a node back") from None

    def _state(self, name: str, pool: _Pool, desired: int) -> PoolState:
        booting = tuple(Booting(instance=i.id, requested_at=self._since(i)) for i in pool.live)
        return PoolState(name=name, desired=desired, booting=booting)

    def _since(self, instance: _Instance) -> datetime:
        """When it was asked for; an instance that does not say is as young as can be: nothing is taken in doubt."""
        try:
            since = msgspec.convert(instance.created_at, datetime)
        except msgspec.ValidationError:
            return self._clock.now()
        return since if since.tzinfo is not None else self._clock.now()
