"""The small world behind a Kubernetes API server's HTTP: the real adapter's calls land in it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from api_server import ApiServer, Asked, api_server
from api_store import Json
from both_ways import Ports
from small_cloud import world

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.facts import labels
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.policy import Claims, Policy
from pilotlight.facts.workload import GpuRequest, PodDemand, PodShape, Requirement
from pilotlight.units import MILLI_PER_GPU
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

ANY_CLAIM = Policy(version=1, claims={"*": Claims(teams=("*",), priority=1_000_000)})
"""What pods of the world say of themselves counts."""
OF_WORLD = "world"
"""The label of the objects that come and go with the world's; whatever else a test adds stays."""


@dataclass
class WorldApi(ApiServer):
    """An API server whose pods and nodes are a world's, and whose cordons and evictions happen in it."""

    world: World = field(kw_only=True)

    def answer(self, asked: Asked) -> tuple[int, Json]:
        """As the stand-in answers, over the world as it is now."""
        self.mirror()
        if asked.path.endswith("/leases/kube-scheduler") and not self.world.faults.silent:
            self.store.write(self.store.resource("leases"), scheduler_lease(self.world.clock.now()))
        status, value = super().answer(asked)
        if asked.method == "PATCH" and "/nodes/" in asked.path:
            closed = value["spec"].get("unschedulable", False) or _carries(value, labels.DRAINING)
            self.world.cordon(value["metadata"]["name"], on=closed)
            self.world.set_home(value["metadata"]["name"], _home(value))
        if asked.method == "PATCH" and "/pods/" in asked.path:
            for home in _homes(value):
                self.world.tolerate(value["metadata"]["uid"], home)
        if asked.method == "POST" and asked.path.endswith("/eviction"):
            self._evict(asked.json().get("deleteOptions", {}))
        if asked.method == "DELETE" and "/pods/" in asked.path and status < 300:
            self._evict(asked.json())
        if asked.method == "POST" and value.get("reason") == labels.CHECKPOINT_NOW:
            pod = value["regarding"]
            with self.world.lock:
                self.world.evictions.checkpoint(pod["namespace"], pod["name"], self.world.now_s)
        return status, value

    def _evict(self, options: Json) -> None:
        """As a kubelet: within the grace of the options, else the pod's own; 0 kills it where it stands."""
        if options.get("dryRun"):
            return
        uid, grace_s = options.get("preconditions", {}).get("uid", ""), options.get("gracePeriodSeconds")
        assert grace_s is None or grace_s >= 0, "the API server refuses a negative grace"
        with self.world.lock:
            self.world.evictions.evict(uid, self.world.now_s, grace_s)

    def mirror(self) -> None:
        """Bring the kept objects to what the world is."""
        view = WorldCluster(self.world).observe()
        wanted = [waiting_pod(demand) for demand in view.pending]
        for node in view.nodes:
            wanted += [node_object(node), *(running_pod(pod, node.name) for pod in node.pods), *done_pods(node)]
        for plural in ("pods", "nodes"):
            kind = {"pods": "Pod", "nodes": "Node"}[plural]
            self._bring(plural, {(_space(o), o["metadata"]["name"]): o for o in wanted if o["kind"] == kind})

    def _bring(self, plural: str, wanted: dict[tuple[str, str], Json]) -> None:
        resource = self.store.resource(plural)
        for there in self.store.list(resource, "", "", OF_WORLD):
            key = (_space(there) if resource.namespaced else "", there["metadata"]["name"])
            if key not in wanted:
                self.store.drop(resource, key)
        for key, new in wanted.items():
            old = self.store.read(resource, key) if self.store.has(resource, key) else {}
            if old.get("kind") == "Node":
                homes = new["spec"].get("taints", [])
                kept = [taint for taint in old["spec"].get("taints", []) if taint["key"] != labels.HOME]
                new["spec"]["taints"] = [*kept, *homes]
                if _carries(old, labels.DRAINING) and not old["spec"].get("unschedulable"):
                    new["spec"].pop("unschedulable", None)
            _keep_marks(old, new)
            if not _same(old, new):
                self.store.write(resource, new)

    def cluster(self, policy: Policy) -> KubernetesCluster:
        """The real adapter over this server."""
        source = source_of("kubeconfig-env:TEST", {"TEST": self.kubeconfig()})
        api = Api(source, pause=lambda _: None)
        return KubernetesCluster(api, policy, self.world.clock, pause=lambda _: None)


@contextmanager
def kubernetes_ports(policy: Policy | None = None, **options: Any) -> Iterator[Ports]:
    """A small world with the real Cluster adapter over its API server, and its own pools."""
    here = world(**options)
    with api_server(WorldApi(world=here)) as api:
        assert isinstance(api, WorldApi)
        yield Ports(here, api.cluster(policy or ANY_CLAIM), WorldPools(here), here.clock)


def _keep_marks(old: Json, new: Json) -> None:
    """Labels and annotations for Karpenter, and who closed a node, are no part of the world, and stay."""
    for part in ("labels", "annotations"):
        written = old.get("metadata", {}).get(part, {})
        if marks := {
            key: value for key, value in written.items() if key.startswith("karpenter.sh/") or key == labels.CLOSED_BY
        }:
            new["metadata"][part] = {**marks, **new["metadata"].get(part, {})}


def waiting_pod(demand: PodDemand) -> Json:
    """A pod as its creator wrote it, that the scheduler could not place."""
    meta = _meta(demand.namespace, demand.name, demand.uid, demand.created_at)
    _describe(meta, demand.shape)
    spec: Json = {"containers": [_container(demand.shape.gpu)], "priority": demand.shape.priority}
    _share(meta, demand.shape.gpu)
    terms = [{"matchExpressions": [_expression(r) for r in term]} for term in demand.shape.terms]
    if terms:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    if demand.homes:
        spec["tolerations"] = [_toleration(home) for home in demand.homes]
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": demand.said}
    conditions = [refused] if demand.said else []
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending", "conditions": conditions}}


def scheduler_lease(renewed: datetime) -> Json:
    """The Lease of kube-scheduler."""
    meta = {"name": "kube-scheduler", "namespace": "kube-system"}
    spec = {"holderIdentity": "control-plane-1", "renewTime": renewed.isoformat()}
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta, "spec": spec}


def running_pod(pod: BoundPod, node: str) -> Json:
    """A pod on a node."""
    meta = _meta(pod.namespace, pod.name, pod.uid, pod.started_at)
    if pod.shape is not None:
        _describe(meta, pod.shape)
    if pod.gpu is not None:
        _share(meta, pod.gpu)
    if pod.checkpoint_takes_s:
        meta["annotations"][labels.CHECKPOINT_TAKES_S] = str(pod.checkpoint_takes_s)
    if pod.checkpointed_at:
        meta["annotations"][labels.CHECKPOINTED_AT] = _text(pod.checkpointed_at)
    spec = {
        "containers": [_container(pod.gpu)],
        "nodeName": node,
        "terminationGracePeriodSeconds": pod.grace_s,
    }
    started = {"startTime": _text(pod.started_at)} if pod.started_at else {}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running", **started}}


def done_pods(node: Node) -> list[Json]:
    """The pod whose end made a node idle."""
    if node.idle_since is None or node.gpu_pods:
        return []
    ended = {"state": {"terminated": {"finishedAt": _text(node.idle_since)}}}
    return [
        {
            "kind": "Pod",
            "metadata": _meta("default", f"done-{node.name}", f"done-{node.name}", node.idle_since),
            "spec": {"containers": [_container(GpuRequest(count=1))], "nodeName": node.name},
            "status": {"phase": "Succeeded", "containerStatuses": [ended]},
        }
    ]


def node_object(node: Node) -> Json:
    """A node as its kubelet and the cloud's controller write it."""
    meta = _meta("", node.name, f"uid-{node.name}", node.created_at)
    meta["labels"] |= {k: v for k, v in node.labels.items() if k != labels.NODE_NAME}
    free = node.free
    room = {
        "cpu": f"{free.cpu_milli}m",
        "memory": str(free.memory),
        "ephemeral-storage": str(free.ephemeral),
        "pods": str(free.pods + len(node.pods)),
        node.resource: str(node.gpus),
        **{name: str(count) for name, count in node.slices.items()},
    }
    ready = {
        "type": "Ready",
        "status": "True" if node.ready else "False",
        "lastTransitionTime": _text(node.created_at),
    }
    return {
        "kind": "Node",
        "metadata": meta,
        "spec": {"providerID": f"world:///{node.instance or node.name}"}
        | ({} if node.schedulable else {"unschedulable": True})
        | ({"taints": [{"key": labels.HOME, "value": node.home, "effect": "NoSchedule"}]} if node.home else {}),
        "status": {"allocatable": room, "capacity": room, "conditions": [ready]},
    }


def _describe(meta: Json, shape: PodShape) -> None:
    meta["labels"] |= {labels.WORKLOAD_CLASS[0]: shape.workload_class}
    if shape.team:
        meta["labels"][labels.TEAM[0]] = shape.team
    if shape.gang:
        meta["annotations"] |= {labels.GANG: shape.gang.key, labels.GANG_SIZE: str(shape.gang.size)}
    if shape.checkpoint_s:
        meta["annotations"][labels.CHECKPOINT_S] = str(shape.checkpoint_s)


def _share(meta: Json, gpu: GpuRequest) -> None:
    if gpu.milli != MILLI_PER_GPU:
        meta["annotations"][labels.GPU_SHARE] = str(gpu.milli / MILLI_PER_GPU)


def _container(gpu: GpuRequest | None) -> Json:
    devices = {gpu.resource: str(gpu.count)} if gpu else {}
    return {"name": "c", "image": "busybox", "resources": {"limits": devices, "requests": devices}}


def _expression(requirement: Requirement) -> Json:
    return {"key": requirement.key, "operator": requirement.operator, "values": list(requirement.values)}


def _meta(namespace: str, name: str, uid: str, created: datetime | None) -> Json:
    meta: Json = {"name": name, "uid": uid, "labels": {OF_WORLD: "yes"}, "annotations": {}}
    if namespace:
        meta["namespace"] = namespace
    if created:
        meta["creationTimestamp"] = _text(created)
    return meta


def _same(old: Json, new: Json) -> bool:
    if not old:
        return False
    bare = {k: v for k, v in old["metadata"].items() if k != "resourceVersion"}
    ours = {**new["metadata"]}
    for meta in (bare, ours):
        meta.pop("creationTimestamp", None)
    return json.dumps([bare, old["spec"], old["status"]], sort_keys=True) == json.dumps(
        [ours, new["spec"], new["status"]], sort_keys=True
    )


def _carries(node: Json, key: str) -> bool:
    return any(taint["key"] == key for taint in node["spec"].get("taints") or ())


def _home(node: Json) -> str:
    return next((taint["value"] for taint in node["spec"].get("taints") or () if taint["key"] == labels.HOME), "")


def _homes(pod: Json) -> list[str]:
    return [each["value"] for each in pod["spec"].get("tolerations") or () if each.get("key") == labels.HOME]


def _toleration(home: str) -> Json:
    return {"key": labels.HOME, "operator": "Equal", "value": home, "effect": "NoSchedule"}


def _space(value: Json) -> str:
    return str(value["metadata"].get("namespace", ""))


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
