"""Reads of a cluster into the few fields needed, and of the pods only those that matter.

Pods that wait are read first: one that is bound meanwhile is then seen in both reads, never in none, and where it
is bound counts.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.listing import (
    BUDGETS,
    CLAIMS,
    DAEMON_SETS,
    KAI_GROUPS,
    KUEUES,
    LEADER_WORKER_SETS,
    NAMESPACES,
    NODES,
    OWN_GROUPS,
    POD_GROUPS,
    PODS,
    STORAGE_CLASSES,
    VOLUMES,
    Lists,
    SharedTemplates,
    pod_path,
)
from pilotlight.adapters.cluster.kubernetes.transport import Api, Decodes, Missing
from pilotlight.codec.kubernetes.companions import (
    DaemonSet,
    DisruptionBudget,
    LeaderWorkerSet,
    Namespace,
    Objects,
    PersistentVolume,
    PodGroup,
    StorageClass,
    VolumeClaim,
)
from pilotlight.codec.kubernetes.kueue_objects import ResourceFlavor, Workload
from pilotlight.codec.kubernetes.nodes.autoscaler_evidence import (
    AUTOSCALER_LEASE,
    AUTOSCALER_NAMESPACE,
    AUTOSCALER_STATUS,
    LeaseOf,
    StatusMap,
    scaler_of_lease,
    scaler_of_status,
)
from pilotlight.codec.kubernetes.nodes.node_room import plugins_of
from pilotlight.codec.kubernetes.nodes.nodes import is_gpu_node
from pilotlight.codec.kubernetes.pages import PodOnNode, listing
from pilotlight.codec.kubernetes.pods.near import keeps_away, uses_near
from pilotlight.codec.kubernetes.pods.pod_groups import OF_KAI, gang_key, in_set
from pilotlight.codec.kubernetes.pods.pods import waits
from pilotlight.codec.kubernetes.pods.requests import claims_devices, read_request
from pilotlight.codec.kubernetes.pods.volumes import claims_of, of_one_pod
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Metadata, Pod, PodSpec
from pilotlight.errors import Forbidden
from pilotlight.facts.capacity import Scaler
from pilotlight.facts.policy import Policy
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.codec.kubernetes.device_objects import Devices

T = TypeVar("T")

FEW_NODES = 5
"""Up to so many GPU nodes are asked for their pods one by one; the pods of the rest of the cluster stay unread."""

ASK_AGAIN_S: Seconds = 600
"""A cluster without Kueue is asked so often whether it has it now."""

STATUS = f"{NAMESPACES}/{AUTOSCALER_NAMESPACE}/configmaps/{AUTOSCALER_STATUS}"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{AUTOSCALER_NAMESPACE}/leases/{AUTOSCALER_LEASE}"


class _Named(msgspec.Struct, frozen=True):
    metadata: Metadata


N = TypeVar(
    "N",
    VolumeClaim,
    PersistentVolume,
    StorageClass,
    DisruptionBudget,
    PodGroup,
    LeaderWorkerSet,
    Namespace,
    ResourceFlavor,
)

_WAITING = "spec.nodeName="
_POD_LIST, _NODE_LIST = listing(Pod), listing(KubeNode)
_DAEMON_SET_LIST, _WORKLOAD_LIST = listing(DaemonSet), listing(Workload)
_STATUS, _LEASE = typed_json.decoder(StatusMap), typed_json.decoder(LeaseOf)
NODE = typed_json.decoder(KubeNode)
OBJECT = typed_json.decoder(_Named)


class Found(NamedTuple):
    """Pods, nodes and other objects of one look."""

    pods: Sequence[Pod]
    nodes: Sequence[KubeNode]
    objects: Objects


class Reads(Lists):
    """The reads of one cluster."""

    def __init__(self, api: Api, policy: Policy) -> None:
        super().__init__(api)
        self._policy = policy
        self._kueues: Sequence[str] = KUEUES
        self._ask_kueue_at = 0.0
        self._ask_devices_at = 0.0

    @property
    def kueue(self) -> str:
        """The path of Kueue's interface, in the version that the last look found."""
        return self._kueues[0]

    def look_without(self, bare: Callable[[Any], Any]) -> Found:
        """A look at objects as ``bare`` leaves them, before anything else is read of them."""
        self._bare = bare
        try:
            return self.look()
        finally:
            self._bare = None

    def look(self) -> Found:
        """Pods that wait, GPU nodes with their pods, and the objects that those refer to.

        While a GPU pod waits also the nodes and pods that may decide where it can run: those with a required
        anti-affinity, and all where it minds other pods itself.
        """
        self.unread, self._largest = [], {}
        waiting = self.waiting()
        gangs = {key for pod in waiting if (key := gang_key(pod))}
        wanting = [pod for pod in waiting if waits(pod) and read_request(pod).holds_gpu]
        nodes, ours = self._nodes(every=bool(wanting))
        bound = self._bound(ours, gangs, self._near(wanting))
        seen = {pod.metadata.uid for pod in bound}
        mine = [pod for pod in bound if pod.spec.node_name in ours or gang_key(pod) in gangs] if wanting else bound
        unbound = [pod for pod in waiting if pod.metadata.uid not in seen]
        objects = self._objects([*unbound, *mine], groups=_groups_of(waiting) if gangs else (), wanting=bool(wanting))
        pods = [*unbound, *bound]
        devices = self._devices(_specs(pods, objects.workloads), nodes)
        more = self._of_no_pool(devices, nodes, ours, {pod.metadata.uid for pod in pods}) if devices else []
        found = [*pods, *more, *self._holders([*pods, *more], objects)]
        strange = tuple(dict.fromkeys(self.unread))
        return Found(found, nodes, msgspec.structs.replace(objects, devices=devices, strange=strange))

    def _nodes(self, *, every: bool) -> tuple[list[KubeNode], set[str]]:
        """The nodes with GPUs, or every one, and the names of those with GPUs."""
        if not every:
            nodes = self.all(NODES, _NODE_LIST, lambda n: n if is_gpu_node(n, self._policy) else None)
            return nodes, {node.metadata.name for node in nodes}
        nodes = self.all(NODES, _NODE_LIST)
        return nodes, {node.metadata.name for node in nodes if is_gpu_node(node, self._policy)}

    def _of_no_pool(self, devices: "Devices", nodes: Sequence[KubeNode], ours: set[str], seen: set[str]) -> list[Pod]:
        """The pods on nodes that only a driver's slices tell to have devices."""
        told = {one.spec.node_name for one in devices.slices.values()} - ours
        apart = told & {node.metadata.name for node in nodes}
        return [pod for pod in (self._bound(apart, set(), None) if apart else ()) if pod.metadata.uid not in seen]

    def _near(self, wanting: Sequence[Pod]) -> Callable[[Pod], bool] | None:
        """Which pods of other nodes matter to these; None: none of them does, and they are not asked for."""
        if not wanting:
            return None
        return (lambda pod: True) if any(map(uses_near, wanting)) else keeps_away

    def scalers(self) -> tuple[Scaler, ...]:
        """Evidence of cluster-autoscaler. Where it may not be read, or is not there, there is none."""
        found = (
            self._one(STATUS, _STATUS, scaler_of_status),
            self._one(LEASE, _LEASE, scaler_of_lease),
        )
        return tuple(each for each in found if each is not None)

    def _one(self, path: str, decoder: msgspec.json.Decoder[T], read: Callable[[T], Scaler | None]) -> Scaler | None:
        try:
            return read(self._api.get(path, decoder))
        except (Missing, Forbidden):
            return None

    def _holders(self, pods: Sequence[Pod], objects: Objects) -> list[Pod]:
        """The pods elsewhere that have a claim which only one pod may have, and for which a GPU pod waits."""
        alone = of_one_pod(objects.claims.values())
        wanted = {
            f"{pod.metadata.namespace}/{name}"
            for pod in (pods if alone else ())
            if not pod.spec.node_name and read_request(pod).holds_gpu
            for name in claims_of(pod)
        } & alone
        seen = {pod.metadata.uid for pod in pods}

        def has(pod: Pod) -> bool:
            names = (f"{pod.metadata.namespace}/{name}" for name in claims_of(pod))
            return pod.metadata.uid not in seen and any(name in wanted for name in names)

        spaces = sorted({name.partition("/")[0] for name in wanted})
        paths = [f"{NAMESPACES}/{quote(space)}/pods" for space in spaces]
        return [pod for path in paths for pod in self.all(path, _POD_LIST, lambda pod: pod if has(pod) else None)]

    def everywhere(self, wanted: Callable[[Pod], bool] = lambda pod: True, selector: str = "") -> list[Pod]:
        """The pods of the whole cluster that are wanted; the others go with their page."""
        share = SharedTemplates()
        pods: Decodes[Any] = _POD_LIST if selector in ("", _WAITING) else listing(PodOnNode)
        return self.all(PODS, pods, lambda pod: share(pod) if wanted(pod) else None, fieldSelector=selector)

    def waiting(self) -> list[Pod]:
        """The pods on no node, chosen by the server."""
        return self.everywhere(selector=_WAITING)

    def on_node(self, node: str) -> list[Pod]:
        """The pods bound to a node now."""
        return self.everywhere(selector=f"spec.nodeName={node}")

    def daemon_sets(self) -> Sequence[DaemonSet] | None:
        """DaemonSets, of which every node that they select is to have a pod; None where we may not list them."""
        try:
            return self.all(DAEMON_SETS, _DAEMON_SET_LIST)
        except Forbidden:
            return None

    def node(self, name: str) -> KubeNode:
        """One node. Raises ``Missing``."""
        return self._api.get(f"{NODES}/{quote(name)}", NODE)

    def pod(self, namespace: str, name: str) -> Metadata:
        """Metadata of a pod. Raises ``Missing``."""
        return self._api.get(pod_path(namespace, name), OBJECT).metadata

    def _bound(self, nodes: set[str], gangs: set[str], near: Callable[[Pod], bool] | None) -> list[Pod]:
        """The pods on these nodes, and wherever else members of these gangs, and those that are ``near``, are."""
        if near is None and not gangs and len(nodes) <= FEW_NODES:
            return [pod for node in sorted(nodes) for pod in self.on_node(node)]

        def wanted(pod: Pod) -> bool:
            return pod.spec.node_name in nodes or gang_key(pod) in gangs or (near is not None and near(pod))

        return self.everywhere(wanted, "spec.nodeName!=")

    def _objects(self, pods: Sequence[Pod], *, groups: Sequence[str], wanting: bool) -> Objects:
        """The objects beside them: of a kind only where something can refer to it, and the API serves it.

        Queued work is read after the pods: what Kueue admits in between is seen in neither, never in both.
        """
        workloads, flavors = self._queued()
        specs = _specs(pods, workloads)
        storage = any(v.persistent_volume_claim or v.ephemeral for spec in specs for v in spec.volumes)
        bound = any(spec.node_name for spec in specs)
        limited = storage and any(not p.spec.node_name and claims_of(p) and read_request(p).holds_gpu for p in pods)
        sets = self.daemon_sets() if wanting else ()
        found = Objects(
            namespaces=self._named(NAMESPACES, Namespace, scoped=False, asked=bool(specs)),
            budgets=self._named(BUDGETS, DisruptionBudget, asked=bound),
            claims=self._named(CLAIMS, VolumeClaim, asked=storage),
            volumes=self._named(VOLUMES, PersistentVolume, scoped=False, asked=storage),
            storage_classes=self._named(STORAGE_CLASSES, StorageClass, scoped=False, asked=storage),
            pod_groups={k: v for path in groups for k, v in self._named(path, PodGroup).items()},
            leader_worker_sets=self._named(LEADER_WORKER_SETS, LeaderWorkerSet, asked=any(map(in_set, pods))),
            workloads=workloads,
            flavors=flavors,
            daemon_sets={f"{one.metadata.namespace}/{one.metadata.name}": one for one in sets or ()},
            daemon_sets_known=sets is not None if wanting else None,
            storage_known=storage,
        )
        if not limited:
            return found
        from pilotlight.adapters.cluster.kubernetes.storage_reads import with_room

        return with_room(self, found)

    def _devices(self, specs: Sequence[PodSpec], nodes: Sequence[KubeNode]) -> "Devices | None":
        """Devices that drivers publish and pods claim; None where nothing claims and every ready node has a device
        plugin's."""
        claiming = claims_devices(specs)
        ours = (node for node in nodes if not plugins_of(node) and is_gpu_node(node, self._policy))
        bare = any(c.type == "Ready" and c.status == "True" for node in ours for c in node.status.conditions)
        if not (claiming or bare) or time.monotonic() < self._ask_devices_at:
            return None
        from pilotlight.adapters.cluster.kubernetes.device_reads import read_devices

        try:
            return read_devices(self, claiming=claiming)
        except Missing:
            self._ask_devices_at = time.monotonic() + ASK_AGAIN_S
            return None

    def _queued(self) -> tuple[dict[str, Workload], dict[str, ResourceFlavor]]:
        """Kueue's Workloads that are not finished, and the flavors of those that want nodes."""
        if time.monotonic() < self._ask_kueue_at:
            return {}, {}
        for version in self._kueues:
            try:
                found = self.all(f"{version}/workloads", _WORKLOAD_LIST, lambda w: None if _finished(w) else w)
            except Missing:
                continue
            self._kueues = (version,)
            workloads = {f"{w.metadata.namespace}/{w.metadata.name}": w for w in found}
            wanted, flavors = any(w.wants_nodes for w in found), f"{version}/resourceflavors"
            return workloads, self._named(flavors, ResourceFlavor, scoped=False, asked=wanted)
        self._kueues, self._ask_kueue_at = KUEUES, time.monotonic() + ASK_AGAIN_S
        return {}, {}

    def _named(self, path: str, model: type[N], *, scoped: bool = True, asked: bool = True) -> dict[str, N]:
        """Objects by "namespace/name", or by name; none where the API does not serve their kind, or none is asked."""
        try:
            found: list[N] = self.all(path, listing(model)) if asked else []
        except Missing:
            return {}
        except Forbidden:  # An account whose role is of before these were read.
            if path not in _NEWER:
                raise
            return {}
        return {f"{o.metadata.namespace}/{o.metadata.name}" if scoped else o.metadata.name: o for o in found}


_NEWER = (KAI_GROUPS, OWN_GROUPS, LEADER_WORKER_SETS)


def _groups_of(pods: Sequence[Pod]) -> list[str]:
    """Where the PodGroups of pods may be."""
    newer = [KAI_GROUPS] * any(OF_KAI in pod.metadata.annotations for pod in pods)
    newer += [OWN_GROUPS] * any(pod.spec.scheduling_group is not None for pod in pods)
    return [*POD_GROUPS, *newer]


def _specs(pods: Iterable[Pod], workloads: Mapping[str, Workload]) -> list[PodSpec]:
    """Specs of pods, and of those to come of work that wants nodes."""
    return [*(pod.spec for pod in pods), *(spec for workload in workloads.values() for spec in workload.specs)]


def _finished(workload: Workload) -> bool:
    return any(c.type == "Finished" and c.status == "True" for c in workload.status.conditions)
