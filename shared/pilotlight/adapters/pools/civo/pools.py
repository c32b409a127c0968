"""Civo's node pools: raised by their absolute count, lowered by one named instance only.

A pool's PUT replaces its labels and taints too (``"taints": null`` may clear them): what it has now is sent back.
Civo has no operation ids and no versions: after a call whose outcome is unknown, only a read tells. A count is raised
right after the read that it rests on, and lowered only where no instance is left.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any, Protocol, TypeVar

import msgspec

from pilotlight import typed_json
from pilotlight.adapters import civo_api
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.civo_api import CivoApi, CivoRefusal
from pilotlight.errors import BadRequest, Denied, LastNode, Retry
from pilotlight.facts.nodes.pool_state import Booting, InstanceState, PoolState
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.ports.state import Clock

RUNS = "ACTIVE"
GONE = ("DELETING", "DELETED")
_GONE_CODES = ("database_cluster_pool_instance_not_found", "instance_not_found")

T = TypeVar("T")

_log = logging.getLogger("pilotlight.civo")


class _Get(Protocol):
    """A read of Civo's."""

    def __call__(self, path: str, shape: type[T]) -> T: ...


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


class CivoPools:
    """The Pools port of one Civo cluster. ``names`` are Civo's pool ids by the policy's names."""

    cloud = "civo"

    def __init__(self, api: CivoApi, cluster: str, names: Mapping[str, str], clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._path = f"/v2/kubernetes/clusters/{cluster}"
        self._names = dict(names)
        self._lock = Lock()

    def describe(self) -> Sequence[PoolState]:
        """Every pool of the policy that Civo has. Instances that are nodes already are among those on their way."""
        pools, desired = self._read(self._api.get)
        return tuple(
            self._state(name, pools[pool], desired[pool]) for name, pool in self._names.items() if pool in pools
        )

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """Civo announces nothing: only an instance that is being deleted is known to go."""
        now, _ = self._find(pool)
        found = next((i for i in now.instances or () if i.id == instance), None)
        if found is None:
            return InstanceState(there=False)
        going = found.status.upper() in GONE
        runs = found.status.upper() == RUNS
        return InstanceState(there=True, created_at=_created(found), going=True if going else None, runs=runs)

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        with self._lock:
            now, desired = self._find(pool)
            if desired >= to:
                return self._state(pool, now, desired)
            with Deadline(civo_api.WRITE_S) as deadline:
                to = min(to, desired + most)
                return self._state(pool, self._put(deadline, now, to, partial(gate, to)), to)

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        with self._lock:
            now, desired = self._find(pool)
            if instance not in [i.id for i in now.live]:
                return
            with Deadline(civo_api.WRITE_S) as deadline:
                try:
                    self._api.delete(deadline, f"{self._path}/pools/{now.id}/instances/{instance}", gate)
                except CivoRefusal as no:
                    if no.code in _GONE_CODES:
                        return
                    if len(now.live) == 1 and no.status != 404:
                        raise LastNode(f"{no}: Civo keeps the last node of pool {pool}") from None
                    raise
                self._lower(deadline, pool, desired)

    def _read(self, get: "_Get") -> tuple[dict[str, _Pool], dict[str, int]]:
        """The pools as they are and their desired sizes, by Civo's ids."""
        cluster = get(self._path, _Cluster)
        found = cluster.pools if cluster.pools is not None else get(f"{self._path}/pools", list[_Pool])
        required = {r.id: r.count for r in cluster.required_pools or ()}
        return {p.id: p for p in found}, {p.id: required.get(p.id, p.count) for p in found}

    def _find(self, name: str, get: "_Get | None" = None) -> tuple[_Pool, int]:
        pools, desired = self._read(get or self._api.get)
        id_ = self._names.get(name, "")
        if id_ not in pools:
            raise BadRequest(
                f"Civo has no pool {id_ or name} in this cluster; create it, or mend pools.{name}.cluster_pool"
            )
        return pools[id_], desired[id_]

    def _put(self, deadline: Deadline, now: _Pool, count: int, gate: Gate) -> _Pool:
        body: dict[str, Any] = {"id": now.id, "count": count, "labels": now.labels or {}, "taints": now.taints or []}
        if now.public_ip_node_pool is not None:
            body["public_ip_node_pool"] = now.public_ip_node_pool
        return self._api.put(deadline, f"{self._path}/pools/{now.id}", body, _Pool, gate)

    def _lower(self, deadline: Deadline, name: str, before: int) -> None:
        """See that the deletion of a pool's only instance took one from its desired size, so that none comes for it.

        Only a pool without instances is set to 0: in any other, a count that comes late would let Civo choose who goes.
        Within the release's own deadline; what cannot be seen or set in time is left to the next release.
        """
        try:
            now, desired = self._find(name, partial(self._api.get_once, deadline))
            if not now.live and desired >= before:
                self._put(deadline, now, 0, OPEN)
        except (Retry, Denied) as no:
            if isinstance(no, CivoRefusal):
                raise LastNode(f"{no}: Civo keeps the count of pool {name}, and brings a node back") from None
            _log.warning("count", extra={"data": {"pool": name, "why": f"not lowered after a release: {no}"}})

    def _state(self, name: str, pool: _Pool, desired: int) -> PoolState:
        booting = tuple(Booting(instance=i.id, requested_at=self._since(i)) for i in pool.live)
        leaves = tuple(i.id for i in pool.instances or () if i not in pool.live)
        return PoolState(name=name, desired=desired, booting=booting, leaves=leaves)

    def _since(self, instance: _Instance) -> datetime:
        """When it was asked for; an instance that does not say is as young as can be: nothing is taken in doubt."""
        return _created(instance) or self._clock.now()


def _created(instance: _Instance) -> datetime | None:
    """When an instance was made, where it says so with its zone."""
    try:
        since = typed_json.convert(instance.created_at, datetime)
    except msgspec.ValidationError:
        return None
    return since if since.tzinfo is not None else None
