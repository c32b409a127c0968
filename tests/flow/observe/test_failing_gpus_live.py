"""A node's GPUs on the control plane that KUBECONFIG names: EKS's node monitoring agent is played by this script, which
writes the condition that the agent writes. The node is an object; nothing but our own taint is changed on it."""

import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from stage import Stage

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, NOTHING, Api
from pilotlight.facts.labels import DRAINING, INSTANCE_TYPE, OPT_IN, POOL
from pilotlight.facts.messages import Tick
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.deps import Deps
from pilotlight.flow.reconcile import reconcile

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]
ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
ROOM = {"cpu": "4", "memory": "16Gi", "pods": "10", "nvidia.com/gpu": "1"}
LONG_AGO = "2026-11-20T09:00:00Z"
"""By the clock of the stage three hours: what is said of a node that has just come up is not believed."""
STRATEGIC = "application/strategic-merge-patch+json"


class Site:
    """A node of one GPU with a pod at work on it, in a namespace and a pool of the run's own."""

    def __init__(self, api: Api) -> None:
        self.api, self.name = api, f"pilotlight-test-{uuid.uuid4().hex[:8]}"
        self.node, self.pod = f"/api/v1/nodes/{self.name}", f"/api/v1/namespaces/{self.name}/pods/work"
        self.api.ask("POST", "/api/v1/namespaces", NOTHING, {"metadata": {"name": self.name}}, JSON)
        meta = {"name": self.name, "labels": {POOL: self.name, INSTANCE_TYPE: "one"}}
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": LONG_AGO}]
        status = {"capacity": ROOM, "allocatable": ROOM, "conditions": ready}
        self.api.ask("POST", "/api/v1/nodes", NOTHING, {"metadata": meta, "status": status}, JSON)
        resources = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
        spec = {"nodeName": self.name, "containers": [{"name": "c", "image": "x", "resources": resources}]}
        self.wait_for(lambda: not self.taints)
        pod = {"metadata": {"name": "work", "labels": {OPT_IN[0]: OPT_IN[1]}}, "spec": spec}
        self.wait_for(lambda: self.try_to_make(pod))

    def try_to_make(self, pod: dict[str, Any]) -> bool:
        """A namespace's service account comes a moment after it."""
        try:
            self.api.ask("POST", self.pod.rpartition("/")[0], NOTHING, pod, JSON)
        except Exception:
            return False
        return True

    def wait_for(self, there: Any) -> None:
        """Until controllers have done it."""
        ends = time.monotonic() + 30
        while not there() and time.monotonic() < ends:
            time.sleep(0.2)

    @property
    def taints(self) -> list[str]:
        """The keys of the node's taints."""
        return [taint["key"] for taint in self.api.get(self.node, ANY)["spec"].get("taints") or ()]

    def say(self, status: str, reason: str) -> None:
        """What the agent writes of the node's GPUs."""
        condition = {"type": "AcceleratedHardwareReady", "status": status, "reason": reason, "message": "played"}
        body = {"status": {"conditions": [condition]}}
        self.api.ask("PATCH", f"{self.node}/status", NOTHING, body, STRATEGIC)

    def clear(self) -> None:
        """Take all of it away."""
        for path in (self.pod, self.node, f"/api/v1/namespaces/{self.name}"):
            self.api.ask("DELETE", path, NOTHING, {"gracePeriodSeconds": 0}, JSON)


@pytest.fixture
def site() -> Iterator[Site]:
    """What the run makes."""
    made = Site(Api(of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0]))))
    try:
        yield made
    finally:
        made.clear()


def test_a_node_whose_gpu_fails_is_closed_and_its_pod_stays(site: Site) -> None:
    """Our taint is on it while the agent says that its GPU is not well, its pod runs on, and people are told once."""
    stage = Stage(pools={site.name: PoolPolicy(instance_type="one", max=3)}, require_label=True)
    deps: Deps = replace(stage.deps, cluster=KubernetesCluster(site.api, stage.deps.policy, stage.deps.clock))
    reconcile(deps, Tick(cluster="c"))
    assert site.taints == []
    site.say("False", "NvidiaXID79Error")
    for _ in range(2):
        reconcile(deps, Tick(cluster="c"))
    assert site.taints == [DRAINING]
    assert site.api.get(site.pod, ANY)["spec"]["nodeName"] == site.name
    [told] = [alert for alert in stage.alerts if alert.kind == "finding-sick-gpu"]
    assert ("NvidiaXID79Error" in told.why, site.name in told.what) == (True, True), told
    site.say("True", "AcceleratedHardwareIsReady")
    reconcile(deps, Tick(cluster="c"))
    assert site.taints == []
