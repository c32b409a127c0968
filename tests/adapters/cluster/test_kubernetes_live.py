"""The Cluster adapter on the control plane that KUBECONFIG names: any with a controller manager will do.

It makes a namespace and a node of its own, with pods bound by hand (nothing needs to run), and takes them away again.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes import listing
from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.reads import Reads
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.errors import BadRequest, Busy, Conflict, Forbidden
from pilotlight.facts.policy import Policy

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]

ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
POLICY = Policy(version=1)


@dataclass
class Live:
    """A namespace and a node on a real control plane, and the adapter over it."""

    api: Api
    mark: str = field(default_factory=lambda: f"pilotlight-test-{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        self.cluster = KubernetesCluster(self.api, POLICY, SystemClock())
        self.reads = Reads(self.api, POLICY)

    @property
    def pods(self) -> str:
        """The path of its pods."""
        return f"/api/v1/namespaces/{self.mark}/pods"

    def make(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object."""
        return self.api.ask("POST", path, ANY, body, JSON)

    def pod(self, name: str, *, gpus: int = 0, bound: bool = True) -> str:
        """A pod, bound to the node and running as far as anybody can tell, or waiting; its uid."""
        self.beat()
        limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
        spec: dict[str, Any] = {
            "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": limits}],
            "terminationGracePeriodSeconds": 0,
        }
        if not bound:
            spec["nodeSelector"] = {"pilotlight.dev/test": "nowhere"}
        else:
            spec["schedulerName"] = "by-hand"
        meta = {"name": name, "namespace": self.mark, "labels": {"app": name}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        made = eventually(lambda: self.make(self.pods, body), Forbidden, BadRequest)
        if bound:
            target = {"apiVersion": "v1", "kind": "Node", "name": self.mark}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            self.make(f"{self.pods}/{name}/binding", binding)
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            self.api.ask("PATCH", f"{self.pods}/{name}/status", NOTHING, {"status": status}, MERGE_PATCH)
        return str(made["metadata"]["uid"])

    def budget(self, app: str, least: int) -> None:
        """A disruption budget, once its controller has counted."""
        path = f"/apis/policy/v1/namespaces/{self.mark}/poddisruptionbudgets"
        spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
        with suppress(Missing):
            self.api.ask("DELETE", f"{path}/{app}", NOTHING)
        meta = {"name": app, "namespace": self.mark}
        self.make(path, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec})

        def counted() -> None:
            status = self.api.get(f"{path}/{app}", ANY).get("status", {})
            if status.get("currentHealthy") != 1 or status.get("disruptionsAllowed") != 1 - least:
                raise Busy(f"the disruption controller has not counted yet: {status}")

        eventually(counted, Busy)

    def node(self) -> dict[str, Any]:
        """Its node."""
        return self.api.get(f"/api/v1/nodes/{self.mark}", ANY)

    def beat(self) -> None:
        """The node's heartbeat: without one its controller soon calls its pods not ready."""
        room = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"}
        ready = {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now()}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        self.api.ask("PATCH", f"/api/v1/nodes/{self.mark}/status", NOTHING, {"status": status}, MERGE_PATCH)

    def there(self, name: str) -> bool:
        """Whether a pod is there."""
        try:
            self.api.get(f"{self.pods}/{name}", NOTHING)
        except Missing:
            return False
        return True

    def goes(self, name: str) -> bool:
        """Whether a pod goes, given a while."""
        ends = time.monotonic() + 120
        while self.there(name) and time.monotonic() < ends:
            time.sleep(0.2)
        return not self.there(name)


def now() -> str:
    """The time as objects have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def eventually(call: Callable[[], Any], *until: type[Exception], seconds: float = 120) -> Any:
    """The answer of a call once it raises none of these; what a controller does takes a moment."""
    ends = time.monotonic() + seconds
    while True:
        try:
            return call()
        except until:
            if time.monotonic() > ends:
                raise
            time.sleep(0.2)


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    """The control plane, with a namespace and a node of two GPUs for these tests."""
    made = Live(Api(of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0]))))
    made.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.mark}})
    made.make("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": made.mark}, "spec": {}})
    try:
        yield made
    finally:
        for path in (f"/api/v1/nodes/{made.mark}", f"/api/v1/namespaces/{made.mark}"):
            with suppress(Missing, Conflict):
                made.api.ask("DELETE", path, NOTHING)
            eventually(partial(gone, made.api, path), Busy, seconds=120)


def gone(api: Api, path: str) -> None:
    """Raises ``Busy`` while there is such an object."""
    with suppress(Missing):
        api.get(path, NOTHING)
        raise Busy(f"{path} is still there")


def test_a_list_is_whole_over_its_pages(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven pods that wait, three a page: each is there once, and seen as demand."""
    monkeypatch.setattr(listing, "PAGE", 3)
    made = {live.pod(f"waits-{n}", gpus=1, bound=False) for n in range(7)}
    waiting = [p.metadata.uid for p in live.reads.waiting() if p.metadata.namespace == live.mark]
    assert sorted(waiting) == sorted(made)
    seen = live.cluster.observe()
    assert {p.uid for p in seen.pending if p.namespace == live.mark} | {f.uid for f in seen.findings} >= made


def test_a_node_is_marked_and_cleared(live: Live) -> None:
    """Our taint, twice; then none, twice; other taints stay, and it is never a cordon."""
    before = live.node()["spec"].get("taints", [])
    for _ in range(2):
        live.cluster.cordon(live.mark)
    spec = live.node()["spec"]
    assert not spec.get("unschedulable")
    assert "pilotlight.dev/draining" in [t["key"] for t in spec["taints"]]
    for _ in range(2):
        live.cluster.uncordon(live.mark)
    spec = live.node()["spec"]
    assert not spec.get("unschedulable")
    assert "pilotlight.dev/draining" not in [t["key"] for t in spec.get("taints", [])]
    assert {t["key"] for t in before} - {"node.kubernetes.io/not-ready"} <= {t["key"] for t in spec.get("taints", [])}


def test_a_stale_version_is_a_conflict(live: Live) -> None:
    """A write over a version that has passed is refused by the server."""
    version = live.node()["metadata"]["resourceVersion"]
    live.cluster.cordon(live.mark)
    live.cluster.uncordon(live.mark)
    patch = {"metadata": {"resourceVersion": version}, "spec": {"unschedulable": True}}
    with pytest.raises(Conflict):
        live.api.ask("PATCH", f"/api/v1/nodes/{live.mark}", NOTHING, patch, MERGE_PATCH)


def test_a_node_that_is_not_there(live: Live) -> None:
    """404 names it."""
    with pytest.raises(BadRequest, match="no-such-node"):
        live.cluster.bound_pods("no-such-node")


def test_what_was_bound_a_moment_ago_is_seen(live: Live) -> None:
    """The list of a node's pods is the quorum's: the binding before it is in it."""
    uid = live.pod("bound", gpus=1)
    (seen,) = [p for p in live.cluster.bound_pods(live.mark) if p.uid == uid]
    assert seen.gpu is not None
    live.cluster.evict(live.mark, "bound", uid)


def test_an_eviction_without_a_budget(live: Live) -> None:
    """By its uid alone; gone already is no error."""
    uid = live.pod("free")
    live.cluster.evict(live.mark, "free", "00000000-0000-0000-0000-000000000000")
    assert live.there("free")
    for _ in range(2):
        live.cluster.evict(live.mark, "free", uid)
    assert live.goes("free")


def test_an_eviction_with_a_budget(live: Live) -> None:
    """Busy while the budget allows none; done when it allows one."""
    uid = live.pod("guarded")
    live.budget("guarded", 1)
    with pytest.raises(Busy):
        live.cluster.evict(live.mark, "guarded", uid)
    assert live.there("guarded")
    live.budget("guarded", 0)
    eventually(lambda: live.cluster.evict(live.mark, "guarded", uid), Busy)
    assert live.goes("guarded")


def test_a_drain(live: Live) -> None:
    """Not without a cordon, not over a GPU pod; the rest is evicted."""
    gpu = live.pod("gpu", gpus=1)
    live.pod("web")
    with pytest.raises(BadRequest, match="not cordoned"):
        live.cluster.drain(live.mark)
    live.cluster.cordon(live.mark)
    try:
        with pytest.raises(Busy, match="1 GPU pod bound"):
            live.cluster.drain(live.mark)
        assert live.there("web")
        live.cluster.evict(live.mark, "gpu", gpu)
        live.cluster.drain(live.mark)
        assert live.goes("web")
    finally:
        live.cluster.uncordon(live.mark)


def test_an_owner_finds_the_event(live: Live) -> None:
    """As `kubectl describe pod` looks for it, and once a change, whatever the figures are by then."""
    uid = live.pod("told", gpus=1, bound=False)
    for message in ("no pool has an A100", "no pool of 3 has an A100"):
        live.cluster.tell(live.mark, "told", "NoGpuNode", message, "model")
    selector = f"involvedObject.uid={uid},reason=NoGpuNode"
    found = live.api.get(f"/api/v1/namespaces/{live.mark}/events", ANY, fieldSelector=selector)
    assert [(event["type"], event["message"]) for event in found["items"]] == [("Warning", "no pool has an A100")]


def test_a_node_shows_its_events(live: Live) -> None:
    """In ``default`` and by its uid, where `kubectl describe node` looks; words too long for an Event are cut."""
    live.cluster.tell("", live.mark, "Kept", "ü" * 2000)
    uid = live.api.get(f"/api/v1/nodes/{live.mark}", ANY)["metadata"]["uid"]
    found = live.api.get("/api/v1/namespaces/default/events", ANY, fieldSelector=f"involvedObject.uid={uid}")
    ours = [event for event in found["items"] if event["reportingComponent"] == "pilotlight"]
    assert [(event["reason"], event["type"]) for event in ours] == [("Kept", "Warning")]
