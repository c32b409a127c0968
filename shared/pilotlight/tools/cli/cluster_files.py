"""A cluster as files show it: what ``kubectl get ... -o json`` printed. It can be looked at and not touched."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pilotlight.codec.kubernetes.companions import Objects
from pilotlight.codec.kubernetes.times import newest
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Pod
from pilotlight.codec.kubernetes.view import view_of
from pilotlight.decide.demand.classify import classify
from pilotlight.errors import Reject
from pilotlight.facts.capacity import BoundPod, ClusterView
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.facts.policy import Policy
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.tools.cli.kubectl_lists import read_nodes, read_objects, read_pods
from pilotlight.units import Seconds


class File(NamedTuple):
    """A file's bytes, and what errors call it."""

    text: bytes
    where: str


def as_list(text: bytes) -> bytes:
    """What kubectl prints; a bare array, as jq leaves of it, becomes the list that it was of."""
    return b'{"kind": "List", "items": ' + text + b"}" if text.lstrip()[:1] == b"[" else text


class FileCluster:
    """A ``Cluster`` over files. Reads them once; raises ``BadInput`` naming the file and the path."""

    def __init__(self, pods: File, nodes: File, objects: Sequence[File], policy: Policy) -> None:
        self._pods: Sequence[Pod] = read_pods(pods.text, pods.where)
        self._nodes: Sequence[KubeNode] = read_nodes(nodes.text, nodes.where)
        self._objects: Objects = read_objects(objects)
        self._policy = policy
        self._view: ClusterView | None = None

    def observe(self) -> ClusterView:
        if self._view is None:
            self._view = view_of(self._pods, self._nodes, self._objects, policy=self._policy, classify=classify)
        return self._view

    def taken_at(self) -> datetime | None:
        """The newest moment the files speak of: they were written then or later."""
        return newest(self._pods, self._nodes)

    def bound_pods(self, node: str) -> Sequence[BoundPod]:
        return next((n.pods for n in self.observe().nodes if n.name == node), ())

    def cordon(self, node: str, by: str = "") -> None:
        raise _untouchable("cordon", node)

    def uncordon(self, node: str) -> None:
        raise _untouchable("uncordon", node)

    def forget_opened(self, node: str) -> None:
        raise _untouchable("take our mark off", node)

    def open(self, node: str) -> None:
        raise _untouchable("open", node)

    def name_home(self, node: str, home: str) -> None:
        raise _untouchable("give a home to", node)

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        raise _untouchable("add a toleration to", f"{namespace}/{pod}")

    def beat(self) -> None:
        raise _untouchable("beat", "the Lease")

    def drain(self, node: str) -> None:
        raise _untouchable("drain", node)

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        raise _untouchable("evict", f"{namespace}/{pod}")

    def delete(self, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
        raise _untouchable("delete", f"{namespace}/{pod}")

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        raise _untouchable("write an event on", f"{namespace}/{name}")


class FilePools:
    """The ``Pools`` behind such files: each is as large as the nodes that registered. It cannot be changed either."""

    cloud = ""

    def __init__(self, cluster: FileCluster) -> None:
        self._cluster = cluster

    def describe(self) -> Sequence[PoolState]:
        sizes = Counter(node.pool for node in self._cluster.observe().nodes)
        return [PoolState(name=name, desired=size) for name, size in sorted(sizes.items())]

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        return None

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        raise _untouchable("grow", f"pool {pool}")

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        raise _untouchable("release", instance)


def _untouchable(verb: str, what: str) -> Reject:
    return Reject(f"cannot {verb} {what}: a dry run changes nothing")
