"""Kueue's paths on the control plane that KUBECONFIG names, with Kueue's CRDs of the shelf.

Kueue itself does not run: what its controllers would write (QuotaReserved, the pending check, Evicted) is played by
this script. Its nodes are objects too; dollars and purchases are those of the built-in world.
"""

import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from kueue_at_work import is_at_work
from stage import Stage

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.events import Delivery, decode
from pilotlight.doorway import takes
from pilotlight.facts.labels import INSTANCE_TYPE, OPT_IN, POOL
from pilotlight.facts.messages import QuotaReserved, Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.deps import Deps
from pilotlight.flow.provision import provision
from pilotlight.flow.reconcile import reconcile
from pilotlight.tools.install import queue_checks

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]
ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
WHEN = "2026-11-22T00:00:00Z"


class Site:
    """A namespace, a ClusterQueue that waits for our answer and a LocalQueue of it, and pools of the run's own."""

    def __init__(self, api: Api) -> None:
        self.api, self.name = api, f"pilotlight-test-{uuid.uuid4().hex[:8]}"
        self.made: list[str] = []
        self.make("/api/v1/namespaces", {"metadata": {"name": self.name}})
        spec: dict[str, Any] = {"namespaceSelector": {}, "resourceGroups": []}
        self.make(f"{KUEUE}/clusterqueues", {"metadata": {"name": self.name}, "spec": spec})
        local = {"metadata": {"name": "research"}, "spec": {"clusterQueue": self.name}}
        self.make(f"{KUEUE}/namespaces/{self.name}/localqueues", local)
        world = Stage(pools={self.name: PoolPolicy(instance_type="one", max=3)}, require_label=True)
        self.stage = world

    def make(self, path: str, body: dict[str, Any]) -> None:
        """Create an object, which goes again; a CRD that has just come is served within seconds."""
        group = "kueue.x-k8s.io/v1beta2" if path.startswith(KUEUE) else "v1"
        kind = {"clusterqueues": "ClusterQueue", "localqueues": "LocalQueue", "workloads": "Workload"}
        full = {"apiVersion": group, "kind": kind.get(path.rpartition("/")[2], ""), **body}
        ends = time.monotonic() + 20
        while True:
            try:
                self.api.ask("POST", path, NOTHING, {k: v for k, v in full.items() if v}, JSON)
                break
            except Missing:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.3)
        self.made.append(f"{path}/{body['metadata']['name']}")

    def deps(self, usd: str) -> Deps:
        """What a tick works with: the real API server, the world's money and machines, a budget of so much a day."""
        on = self.stage
        policy = msgspec.structs.replace(on.deps.policy, budgets=(Budget(name="b", usd=Decimal(usd), period="day"),))
        return replace(on.deps, policy=policy, cluster=KubernetesCluster(self.api, policy, on.deps.clock))

    def workload(self, name: str) -> None:
        """A Workload of one pod that has its quota and waits for our check, as Kueue would leave it."""
        resources = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
        pod = {"containers": [{"name": "c", "image": "x", "resources": resources}], "restartPolicy": "Never"}
        template = {"metadata": {"labels": {OPT_IN[0]: OPT_IN[1]}}, "spec": pod}
        spec = {"queueName": "research", "podSets": [{"name": "main", "count": 1, "template": template}]}
        self.make(f"{KUEUE}/namespaces/{self.name}/workloads", {"metadata": {"name": name}, "spec": spec})
        check = {"name": "pilotlight", "state": "Pending", "message": "", "lastTransitionTime": WHEN}
        self.play(name, check=check, QuotaReserved="True")

    def play(self, name: str, check: dict[str, str] | None = None, **conditions: str) -> None:
        """What Kueue's controllers would write."""
        said = [
            {"type": kind, "status": status, "reason": "Played", "message": "", "lastTransitionTime": WHEN}
            for kind, status in conditions.items()
        ]
        status: dict[str, Any] = {"conditions": said, **({"admissionChecks": [check]} if check else {})}
        path = f"{KUEUE}/namespaces/{self.name}/workloads/{name}/status"
        self.api.ask("PATCH", path, NOTHING, {"status": status}, MERGE_PATCH)

    def tell(self, name: str) -> None:
        """What Kueue's recorder writes of a Workload that has its quota."""
        about = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "namespace": self.name, "name": name}
        said = {"reason": "QuotaReserved", "type": "Normal", "message": "Quota reserved in ClusterQueue"}
        meta = {"name": f"{name}.reserved", "namespace": self.name}
        body = {"kind": "Event", "metadata": meta, "involvedObject": about, "firstTimestamp": WHEN, **said}
        self.make(f"/api/v1/namespaces/{self.name}/events", body)

    def sent(self, path: str) -> QuotaReserved:
        """What a source that watches this object sends, as the server has it, and what kueue_admission takes it for."""
        body = msgspec.json.encode(self.api.get(path, ANY))
        [found] = decode(body, {}, cluster="c")
        assert isinstance(found, Delivery)
        assert isinstance(found.message, QuotaReserved)
        assert takes("kueue_admission", found.message)
        return found.message

    def answer(self, name: str) -> dict[str, Any]:
        """How our check stands."""
        found = self.api.get(f"{KUEUE}/namespaces/{self.name}/workloads/{name}", ANY)
        assert found["spec"].get("active", True)
        check: dict[str, Any] = found["status"]["admissionChecks"][0]
        return check

    def node(self) -> None:
        """A node of the pool, ready with its GPU, once the node controller has taken its first taint off."""
        room = {"cpu": "4", "memory": "16Gi", "pods": "10", "nvidia.com/gpu": "1"}
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        status = {"capacity": room, "allocatable": room, "conditions": ready}
        meta = {"name": self.name, "labels": {POOL: self.name, INSTANCE_TYPE: "one"}}
        self.make("/api/v1/nodes", {"kind": "Node", "metadata": meta, "status": status})
        ends = time.monotonic() + 30
        while self.api.get(f"/api/v1/nodes/{self.name}", ANY)["spec"].get("taints") and time.monotonic() < ends:
            time.sleep(0.2)

    def clear(self) -> None:
        """Take all of it away."""
        for path in reversed(self.made):
            self.api.ask("DELETE", path, NOTHING, {"gracePeriodSeconds": 0}, JSON)


@pytest.fixture
def site(shelf: Path) -> Iterator[Site]:
    """The CRDs, and what the run makes."""
    api = Api(of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0])))
    if is_at_work(api):
        pytest.skip("a Kueue is at work here: test_kueue_real tries it, and this script would play against it")
    for path in sorted((shelf / "contracts" / "crds" / "kueue").glob("*.yaml")):
        crd = next(each for each in yaml.safe_load_all(path.read_text()) if each)
        where = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
        query = "?fieldManager=pilotlight-test&force=true"
        api.ask("PATCH", f"{where}{query}", NOTHING, crd, "application/apply-patch+yaml")
    made = Site(api)
    try:
        yield made
    finally:
        made.clear()


def test_dollars_are_held_before_work_is_let_in(site: Site) -> None:
    """By Kueue's Event a node is bought and its dollars are held while the check is pending; the Workload's own change
    asks for no second one; Ready comes when it is there."""
    deps = site.deps("100")
    site.workload("train")
    site.tell("train")
    event = site.sent(f"/api/v1/namespaces/{site.name}/events/train.reserved")
    changed = site.sent(f"{KUEUE}/namespaces/{site.name}/workloads/train")
    assert (event.name, changed.name, provision(deps, event).outcome) == ("train", "train", "done")
    provision(deps, changed)
    held = sum(each.total for each in budget_holds.balances(deps, deps.state.now()).balances)
    assert (site.answer("train")["state"], held > 0) == ("Pending", True)
    assert [pool.desired for pool in deps.pools.describe()] == [1]
    site.node()
    reconcile(deps, Tick(cluster="c"))
    told = site.answer("train")
    assert (told["state"], told["message"]) == ("Ready", f"ready: {site.name}")
    assert told["podSetUpdates"] == [{"name": "main", "nodeSelector": {INSTANCE_TYPE: "one"}}]


def test_where_another_makes_nodes_dollars_are_enough(site: Site) -> None:
    """In a pool that we only advise on: the dollars are held, then Ready without a node; both end with the Workload."""
    acts = site.deps("100")
    deps = replace(acts, mode="advise", policy=acts.policy)
    site.workload("train")
    reconcile(deps, Tick(cluster="c"))
    told = site.answer("train")
    held = sum(each.total for each in budget_holds.balances(deps, deps.state.now()).balances)
    assert (told["state"], told["message"].startswith("held $"), held > 0) == ("Ready", True, True)
    assert [pool.desired for pool in deps.pools.describe()] == [0]
    site.play("train", QuotaReserved="True", Finished="True")
    site.stage.wait(1800)
    reconcile(deps, Tick(cluster="c"))
    after = sum(each.total for each in budget_holds.balances(deps, deps.state.now()).balances)
    assert after == Decimal("0.5")


def test_without_money_work_comes_again(site: Site) -> None:
    """No money is Retry without a time, never Rejected, and what is evicted gets no answer."""
    deps = site.deps("0.01")
    site.workload("train")
    reconcile(deps, Tick(cluster="c"))
    told = site.answer("train")
    assert (told["state"], "requeueAfterSeconds" in told, "budget b" in told["message"]) == ("Retry", False, True)
    again = {"name": "pilotlight", "state": "Pending", "message": "", "lastTransitionTime": WHEN}
    site.play("train", check=again, QuotaReserved="True", Evicted="True")
    reconcile(deps, Tick(cluster="c"))
    assert site.answer("train")["state"] == "Pending"


def test_queues_are_stopped_and_are_as_before(site: Site) -> None:
    """stopPolicy of both kinds of queue is set, and put back from what is kept on the queue; the check comes off."""
    cluster, local = KubernetesCluster(site.api, site.stage.deps.policy, site.stage.deps.clock), f"{site.name}/research"

    def stands() -> list[str]:
        paths = (f"clusterqueues/{site.name}", f"namespaces/{site.name}/localqueues/research")
        return [site.api.get(f"{KUEUE}/{path}", ANY)["spec"].get("stopPolicy", "None") for path in paths]

    assert [cluster.stop_queue(queue, "over") for queue in (site.name, local)] == [True, True]
    assert stands() == ["Hold", "Hold"]
    assert [cluster.stop_queue(queue, "") for queue in (site.name, local)] == [True, True]
    assert stands() == ["None", "None"]
    assert [
        q.changed for q in queue_checks.take(site.api, [site.name], site.stage.deps.clock.now(), dry_run=False)
    ] == [True]
    cluster.stop_queue(local, "over")
    back = {q.name for q in queue_checks.hand_back(site.api, dry_run=False)}
    assert {site.name, local} <= back
    queue = site.api.get(f"{KUEUE}/clusterqueues/{site.name}", ANY)["spec"]
    assert (stands(), queue.get("admissionChecksStrategy")) == (["None", "None"], None)
