"""A real API server as ``bench/scheduler/agreement.py`` uses it: objects made and taken away, nodes as if bought."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from typer.testing import CliRunner

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, Api, Missing
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.offers.offerings import offerings
from pilotlight.errors import Conflict, PilotlightError
from pilotlight.facts.capacity import Offering, Taint
from pilotlight.facts.labels import HOME, HOSTNAME
from pilotlight.facts.offers.catalog import empty_node
from pilotlight.facts.place.homes import but_home
from pilotlight.facts.policy import Policy
from pilotlight.tools.cli.main import build

Object = dict[str, Any]
ANY: msgspec.json.Decoder[Object] = msgspec.json.Decoder(dict)
MARK = "agreement.test/of"
ONLY = {"key": "agreement.test/only", "value": "true", "effect": "NoSchedule"}
CATALOG = """
name: agreement
as_of: 2026-11-01T00:00:00Z
instance_types:
  one.t4: {cloud: world, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi, ephemeral: 100Gi, boot_s: 60, pods: 29,
           prices: {on-demand: {usd_per_hour: 1, source: a bench, date: 2026-11-01}}}
  four.t4: {cloud: world, gpu_model: T4, gpus: 4, cpu: "48", memory: 192Gi, ephemeral: 500Gi, boot_s: 60,
            prices: {on-demand: {usd_per_hour: 5, source: a bench, date: 2026-11-01}}}
  two.a100: {cloud: world, gpu_model: A100, gpus: 2, gpu_product: NVIDIA-A100-SXM4-40GB, cpu: "24", memory: 170Gi,
             ephemeral: 500Gi, boot_s: 60, prices: {on-demand: {usd_per_hour: 8, source: a bench, date: 2026-11-01}}}
"""
POOLS: Object = {
    "one": {"instance_type": "one.t4", "zones": ["zone-a", "zone-b", "zone-c"]},
    "four": {"instance_type": "four.t4", "zones": ["zone-a", "zone-b"]},
}
_PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/namespaces/{}/csistoragecapacities",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
}
Publish = Callable[[str, Offering], Iterable[Object]]
"""The ResourceSlices of a node of an offering."""
SETTLED_S, LONGEST_S = 12.0, 30.0
"""Nothing has bound for so long: nothing will. The scheduler lets a pod rest for at most ten seconds."""


@dataclass
class Bed:
    """One shape's part of a cluster: its namespace, and everything it made."""

    api: Api
    kubeconfig: str
    name: str
    folder: Path
    made: list[tuple[str, Object]] = field(default_factory=list)
    nodes: int = 0

    @property
    def space(self) -> str:
        """Its namespace."""
        return f"agreement-{self.name}"

    def make(self, found: Object) -> Object:
        """Create an object; what has no namespace of its own goes into this one's."""
        kind = found["kind"]
        meta = found["metadata"]
        path = _PATHS[kind].format(meta.get("namespace", self.space))
        self.made.append((f"{path}/{meta['name']}", found))
        return eventually(lambda: self.api.ask("POST", path, ANY, found, JSON))

    def node(self, name: str, labels: Mapping[str, str], room: Mapping[str, str], taints: Sequence[Object]) -> None:
        """A node that is Ready. Its devices come after its DaemonSets' pods, as a device plugin brings them."""
        full = {"pods": "110", **room}
        first = {key: amount for key, amount in full.items() if "/" not in key}
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        status = {"capacity": first, "allocatable": first, "conditions": ready}
        meta = {"name": name, "labels": {**labels, HOSTNAME: name, MARK: self.name}}
        self.make(
            {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": list(taints)}, "status": status}
        )
        if any(found["kind"] == "DaemonSet" for _, found in self.made):
            self._daemons_there(name)
        devices = {"status": {"capacity": full, "allocatable": full}}
        self.api.ask("PATCH", f"/api/v1/nodes/{name}/status", ANY, devices, MERGE_PATCH)

    def buy(self, offering: Offering, policy: Policy, publish: Publish | None = None, home: str = "") -> str:
        """A node of an offering, as the plan predicted it; where a driver publishes its devices, without a plugin's.

        With a ``home`` it takes only the pods that tolerate that, else all: no node is born closed here.
        """
        self.nodes += 1
        name = f"{self.space}-{offering.pool}-{self.nodes}"
        catalog = read_catalog(CATALOG.encode(), "catalog")
        machine = catalog.instance_types[offering.instance_type]
        pool = policy.pools[offering.pool]
        free = empty_node(machine, pool.slices).resources
        room = {"cpu": f"{free.cpu_milli}m", "memory": str(free.memory), "ephemeral-storage": str(free.ephemeral)}
        room |= {"pods": str(free.pods), **{key: str(amount) for key, amount in free.other}}
        if publish is None:
            room |= {key: str(amount) for key, amount in pool.slices.items()}
        if offering.devices and publish is None:
            room[offering.resource] = str(len((1,) * (offering.whole_gpus or offering.gpus)))
        taints = (*but_home(offering.taints), *([Taint(key=HOME, value=home, effect="NoSchedule")] if home else []))
        self.node(name, offering.labels, room, [msgspec.to_builtins(taint) for taint in taints])
        for found in publish(name, offering) if publish is not None else ():
            self.make(found)
        return name

    def open(self, node: str) -> None:
        """Take a node's home away."""
        path = f"/api/v1/nodes/{node}"
        kept = [taint for taint in self.api.get(path, ANY)["spec"].get("taints", []) if taint["key"] != HOME]
        self.api.ask("PATCH", path, ANY, {"spec": {"taints": kept}}, MERGE_PATCH)

    def tolerate(self, pod: str, home: str) -> None:
        """Give a pod of the namespace the toleration of a home."""
        path = f"/api/v1/namespaces/{self.space}/pods/{pod}"
        own = self.api.get(path, ANY)["spec"].get("tolerations", [])
        given = [*own, {"key": HOME, "operator": "Equal", "value": home, "effect": "NoSchedule"}]
        self.api.ask("PATCH", path, ANY, {"spec": {"tolerations": given}}, MERGE_PATCH)

    def plan(self, policy: Path) -> Object:
        """The plan that ``pilotlight plan`` prints of the cluster."""
        words = ["plan", "--kubeconfig", self.kubeconfig, "--policy", str(policy), "--json"]
        words += ["--catalog", str(self.folder / "catalog.yaml")]
        result = CliRunner().invoke(build(words), words)
        if result.exit_code:
            raise SystemExit(f"{self.name}: pilotlight plan failed: {result.output} {result.exception!r}")
        found: Object = json.loads(result.stdout)
        return found

    def policy(self, pools: Object) -> tuple[Path, Policy]:
        """Its policy as a file and as a value: every pool carries the shape's label and the bench's taint."""
        each = {
            name: {
                "max": 20,
                **pool,
                "labels": {MARK: self.name, **pool.get("labels", {})},
                "taints": [ONLY, *pool.get("taints", [])],
            }
            for name, pool in pools.items()
        }
        classes = {name: {"gpu_models": "any"} for name in ("training", "serving", "notebook", "batch")}
        text = json.dumps({"version": 1, "pools": each, "classes": classes})
        path = self.folder / f"{self.name}.yaml"
        path.write_text(text)
        return path, read_policy(text.encode(), str(path))

    def bound_pods(self) -> dict[str, str]:
        """The node of each pod of the namespace, empty where it has none."""
        pods = self.api.get(f"/api/v1/namespaces/{self.space}/pods", ANY)["items"]
        return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in pods}

    def _daemons_there(self, node: str) -> None:
        """Wait for the DaemonSets' pods on a new node; where none select it that cannot be seen."""
        for _ in range(20):
            time.sleep(0.3)
            pods = self.api.get(f"/api/v1/namespaces/{self.space}/pods", ANY)["items"]
            owned = [p for p in pods if p["metadata"].get("ownerReferences") and p["spec"].get("nodeName") == node]
            if owned:
                return

    def looked_at(self, names: Sequence[str]) -> None:
        """Wait until the scheduler has said something of each of these pods, or of all that are its own."""
        for _ in range(40):
            time.sleep(0.3)
            pods = self.api.get(f"/api/v1/namespaces/{self.space}/pods", ANY)["items"]
            waiting = [p for p in pods if p["metadata"]["name"] in names and not p["spec"].get("nodeName")]
            ours = [p for p in waiting if p["spec"]["schedulerName"] == "default-scheduler"]
            if all(any(c["type"] == "PodScheduled" for c in p["status"].get("conditions", ())) for p in ours):
                return

    def claims_bound(self) -> None:
        """Wait until the claims that name their volume have it: the volume controller looks every 15 seconds."""
        path = f"/api/v1/namespaces/{self.space}/persistentvolumeclaims"
        for _ in range(80):
            claims = self.api.get(path, ANY)["items"] if any("volumeclaims" in path for path, _ in self.made) else []
            if all(claim["status"]["phase"] == "Bound" for claim in claims if claim["spec"].get("volumeName")):
                return
            time.sleep(0.5)

    def settled(self, waiting: Sequence[str], still_s: float = SETTLED_S) -> dict[str, str]:
        """Where its pods are once nothing moves any more."""
        begun = changed = time.monotonic()
        last = self.bound_pods()
        while time.monotonic() - begun < LONGEST_S and time.monotonic() - changed < still_s:
            if all(last.get(name) for name in waiting):
                break
            time.sleep(0.3)
            if (now := self.bound_pods()) != last:
                last, changed = now, time.monotonic()
        return last

    def clear(self) -> None:
        """Take everything away, pods first."""
        for rank in ("DaemonSet", "Pod", ""):
            for path, found in reversed(self.made):
                if found["kind"] == rank or (not rank and found["kind"] not in ("DaemonSet", "Pod")):
                    self._delete(path)
        volumes = self.api.get(_PATHS["PersistentVolume"], ANY)["items"]
        for volume in volumes:
            if volume["spec"].get("claimRef", {}).get("namespace") == self.space:
                self._delete(f"{_PATHS['PersistentVolume']}/{volume['metadata']['name']}")

    def _delete(self, path: str) -> None:
        with suppress(Missing, Conflict):
            self.api.ask("DELETE", path, ANY, {"gracePeriodSeconds": 0}, JSON)


def eventually(call: Callable[[], Object]) -> Object:
    """A call that is tried again while the namespace's service account is not there yet."""
    for _ in range(50):
        try:
            return call()
        except PilotlightError as error:
            last = error
            if "service account" not in str(error) and "serviceaccount" not in str(error):
                raise
            time.sleep(0.1)
    raise last


def offered(policy: Policy) -> dict[str, Offering]:
    """Offerings that the pools can buy, by name."""
    found, problems = offerings(policy, read_catalog(CATALOG.encode(), "catalog"))
    if problems:
        raise SystemExit(str(problems))
    return {one.name: one for one in found}


@contextmanager
def bed(kubeconfig: str, name: str, folder: Path) -> Iterator[Bed]:
    """A shape's part of the cluster, which goes again."""
    found = Bed(api_of(kubeconfig), kubeconfig, name, folder)
    try:
        found.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": found.space}})
        yield found
    finally:
        found.clear()


def api_of(kubeconfig: str) -> Api:
    """The API server that a kubeconfig names."""
    return Api(of_file(Path(kubeconfig)))
