"""Settings of a GKE node pool, read and set by the names of ``pool_handover``: for commands, never a look.

Only ``setAutoscaling`` and ``setManagement`` are asked. ``nodePools.update`` is not, for labels either: it recreates
nodes by default ("standard rolling update strategy with VM recreation", ``container.v1``). So no mark is left.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from pilotlight import typed_json
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.gke import apis, cluster_at
from pilotlight.adapters.pools.gke.closed import why_closed
from pilotlight.adapters.pools.gke.google_rest import GoogleRest
from pilotlight.adapters.pools.gke.node_pools import Cluster, NodePool
from pilotlight.errors import BadRequest, Denied, Unavailable
from pilotlight.ports.clouds import CALL_S, OPEN, CloudAccount
from pilotlight.ports.state import Clock
from pilotlight.tools.install.handover import GroupState, Handover
from pilotlight.units import Seconds

LOOK_S: Seconds = 5
LOOKS = 60
"""An operation on a node pool is waited for so often."""
EXCLUDE = (
    "where a release channel insists on auto-repair, add a maintenance exclusion of scope no_minor_or_node_upgrades"
)


QUEUED = (
    "its nodes come by GKE's queue, which needs its autoscaling: nothing is taken over, mode act alone asks the queue"
)


class _Scaling(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What setAutoscaling takes; fields are GKE's own."""

    enabled: bool = False
    min_node_count: int = 0
    max_node_count: int = 0
    total_min_node_count: int = 0
    total_max_node_count: int = 0
    location_policy: str = ""


class _Management(msgspec.Struct, frozen=True, rename="camel"):
    auto_repair: bool = False
    auto_upgrade: bool = False


class _Pool(msgspec.Struct, frozen=True):
    name: str
    autoscaling: _Scaling = _Scaling()
    management: _Management = _Management()


class _Pools(msgspec.Struct, frozen=True, rename="camel"):
    node_pools: tuple[_Pool, ...] = ()


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Operation(msgspec.Struct, frozen=True):
    name: str = ""
    status: str = ""
    error: _Error | None = None


def open_handover(where: str, account: CloudAccount) -> Handover | None:
    """The node pools of a cluster; None where ``where`` is not PROJECT/LOCATION/CLUSTER."""
    cluster = cluster_at(where)
    return GkeHandover(apis(account)[0], cluster, account.names, account.clock) if cluster else None


class GkeHandover:
    """The Handover port. ``names`` are node pools of the ``cluster``, by pool."""

    def __init__(self, gke: GoogleRest, cluster: str, names: Mapping[str, str], clock: Clock) -> None:
        self._gke, self._cluster, self._names, self._clock = gke, cluster, dict(names), clock

    def read(self) -> Mapping[str, GroupState]:
        cluster = self._gke.read(f"/v1/{self._cluster}", Cluster)
        pools, settings = {pool.name: pool for pool in cluster.node_pools}, self._settings()
        return {
            name: self._state(cluster, pools[called], settings[called])
            for name, called in self._names.items()
            if called in pools and called in settings
        }

    def put(self, group: str, name: str, to: str) -> None:
        if name == "autoscaling":
            self._set(group, "setAutoscaling", {"autoscaling": _scaling(group, to)})
        elif name == "repairs":
            upgrades = self._settings()[group].management.auto_upgrade
            try:
                self._set(group, "setManagement", {"management": {"autoRepair": to == "true", "autoUpgrade": upgrades}})
            except Denied as no:
                raise BadRequest(f"{no}; {EXCLUDE}") from None
        else:
            raise BadRequest(f"node pool {group} has no setting {name!r}; update Pilotlight, which wrote it down")

    def _settings(self) -> dict[str, _Pool]:
        return {pool.name: pool for pool in self._gke.read(f"/v1/{self._cluster}", _Pools).node_pools}

    def _state(self, cluster: Cluster, pool: NodePool, own: _Pool) -> GroupState:
        """Auto-repair is left out where a maintenance exclusion holds it up: it need not be switched off then."""
        _, project, _, location, _, name = self._cluster.split("/")
        where, now = f"--cluster {name} --location {location} --project {project}", self._clock.now()
        unscaled = replace(pool, autoscaling=replace(pool.autoscaling, enabled=False))
        repairs = why_closed(cluster, unscaled, where, now) is not None or not pool.management.auto_repair
        bare = replace(unscaled, management=replace(pool.management, auto_repair=False))
        no = why_closed(cluster, bare, where, now)
        scaling = msgspec.json.encode(own.autoscaling).decode() if own.autoscaling.enabled else ""
        return GroupState(
            group=pool.name,
            settings={
                "autoscaling": scaling,
                **({"repairs": "true" if pool.management.auto_repair else "false"} if repairs else {}),
            },
            busy=no.why if no and no.passes else "",
            never=QUEUED if pool.queued_provisioning.enabled else no.why if no and not no.passes else "",
            marks=False,
        )

    def _set(self, pool: str, verb: str, body: Mapping[str, object]) -> None:
        with Deadline(CALL_S) as deadline:
            path = f"/v1/{self._cluster}/nodePools/{pool}:{verb}"
            done = self._gke.change(deadline, path, _Operation, body, OPEN)
        for _ in range(LOOKS):
            if done.status == "DONE":
                break
            self._gke.sleep(LOOK_S)
            location = self._cluster.partition("/clusters/")[0]
            done = self._gke.read(f"/v1/{location}/operations/{done.name}", _Operation)
        if done.status != "DONE":
            raise Unavailable(f"GKE is still at {verb} of node pool {pool} ({done.name}); run it again later")
        if done.error is not None:
            raise Denied(f"GKE's {verb} of node pool {pool}: {done.error.message[:240] or 'it does not say why'}")


def _scaling(pool: str, to: str) -> dict[str, object]:
    """What setAutoscaling is told: off where nothing is to be."""
    try:
        wanted = typed_json.decode(to or "{}", _Scaling)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the autoscaling of node pool {pool} was {to!r} ({error}); set it by hand") from None
    made: dict[str, object] = msgspec.to_builtins(wanted)
    return {"enabled": False} | made
