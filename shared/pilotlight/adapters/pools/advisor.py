"""Advice alone: decides and reports over what a cluster shows, and can change nothing of it or of its cloud."""

from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

from pilotlight.errors import Forbidden
from pilotlight.facts.capacity import BoundPod, ClusterView
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.ports.cluster import Cluster
from pilotlight.units import Seconds


class AdvisedCluster:
    """A cluster that is only read."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.seen: ClusterView | None = None
        """The view of the last look."""

    def observe(self) -> ClusterView:
        self.seen = self._cluster.observe()
        return self.seen

    def bound_pods(self, node: str) -> Sequence[BoundPod]:
        return self._cluster.bound_pods(node)

    def cordon(self, node: str, by: str = "") -> None:
        _refuse(f"cordon {node}")

    def uncordon(self, node: str) -> None:
        _refuse(f"uncordon {node}")

    def forget_opened(self, node: str) -> None:
        _refuse(f"take our mark off {node}")

    def open(self, node: str) -> None:
        _refuse(f"open {node}")

    def name_home(self, node: str, home: str) -> None:
        _refuse(f"give {node} a home")

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        _refuse(f"add a toleration to {namespace}/{pod}")

    def beat(self) -> None:
        _refuse("renew the placement Lease")

    def drain(self, node: str) -> None:
        _refuse(f"drain {node}")

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        _refuse(f"evict {namespace}/{pod}")

    def delete(self, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
        _refuse(f"delete {namespace}/{pod}")

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        _refuse(f"write an Event on {namespace}/{name}")


class AdvisorPools:
    """Node pools as the cluster shows them: a pool's desired size is the nodes it has, and nothing is on its way."""

    cloud = ""

    def __init__(self, cluster: AdvisedCluster, pools: Sequence[str]) -> None:
        self._cluster, self._pools = cluster, tuple(pools)

    def describe(self) -> Sequence[PoolState]:
        view = self._cluster.seen or self._cluster.observe()
        shown = Counter(node.pool for node in view.nodes)
        return tuple(PoolState(name=name, desired=shown[name]) for name in self._pools)

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        return None

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        _refuse(f"grow pool {pool} to {to}")

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        _refuse(f"release {instance} of pool {pool}")


def _refuse(what: str) -> NoReturn:
    raise Forbidden(f"the advisor does not {what}: name the cloud in PILOTLIGHT_POOLS and set the pool's mode to act")
