"""Homes on the control plane that KUBECONFIG names: its own scheduler binds each pod to the node bought for it.

The account and the cloud are those of ``bench/scheduler/homes_live.py``: nodes are objects that join within seconds.
A cluster without other GPU nodes and waiting pods, please.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from homes_live import pod
from live_cloud import ANY, LiveCloud
from live_run import Figures, Live, Site, admitted, policy_of
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, NOTHING
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import HOME, NEW_HOME
from pilotlight.facts.messages import Tick
from pilotlight.flow.reconcile import reconcile
from pilotlight.wiring import App

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]

ANYWHERE = ("T4", "A10G", "V100", "A100")
WITHIN_S = 120.0
Object = dict[str, Any]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Our account, with its limits."""
    with admitted() as found:
        yield found


class Scene(Live):
    """Pods, Pilotlight that looks when it is told to, and a cloud whose nodes join after one to three seconds."""

    def __init__(self, site: Site, pods: Sequence[Object], made: type[KubernetesCluster] = KubernetesCluster) -> None:
        super().__init__(Figures("", "homes", False, 1, len(pods)), site)
        self.make(pods)
        self.app, self.cloud = self._begun(made)

    def _begun(self, made: type[KubernetesCluster]) -> tuple[App, LiveCloud]:
        return self.begin(KubernetesCluster(self.api, policy_of("homes"), SystemClock()), (1.0, 3.0), made)

    def look(self) -> None:
        """One tick."""
        reconcile(self.app.deps, Tick(cluster=self.mark))

    def planned(self) -> Plan:
        """The plan of now."""
        plan = reconcile(self.app.deps, Tick(cluster=self.mark), dry_run=True).plan
        assert plan is not None
        return plan

    def pods_there(self) -> dict[str, Object]:
        """Pods by name."""
        return {found["metadata"]["name"]: found for found in self.api.get(self.space, ANY)["items"]}

    def homes_of_nodes(self) -> dict[str, str]:
        """Homes of nodes by name; of those without the taint an empty one."""
        nodes = self.api.get("/api/v1/nodes", ANY)["items"]
        mine = [each for each in nodes if each["metadata"]["labels"].get("homes-live") == self.mark]
        return {each["metadata"]["name"]: _value(each["spec"].get("taints", ())) for each in mine}

    def until_bound(self) -> dict[str, str]:
        """Look twice a second until every pod is bound; the node of each."""
        ends = time.monotonic() + WITHIN_S
        while True:
            self.look()
            on = {name: found["spec"].get("nodeName", "") for name, found in self.pods_there().items()}
            if all(on.values()):
                return on
            assert time.monotonic() < ends, f"not bound: {[name for name, node in on.items() if not node]}"
            time.sleep(0.5)

    def end(self) -> None:
        """Take everything away."""
        self.api.ask("DELETE", self.space, NOTHING)
        self.cloud.close()
        self.api.ask("DELETE", f"/api/v1/namespaces/{self.mark}", NOTHING)


def _value(taints: Sequence[Object]) -> str:
    return next((taint.get("value", "") for taint in taints if taint["key"] == HOME), "")


def _homes(found: Object) -> list[str]:
    return [each["value"] for each in found["spec"].get("tolerations", ()) if each.get("key") == HOME]


@pytest.fixture
def scenes(site: Site) -> Iterator[Callable[..., Scene]]:
    """Makes scenes, and takes them away."""
    made: list[Scene] = []

    def make(pods: Sequence[Object], *rest: Any) -> Scene:
        made.append(Scene(site, pods, *rest))
        return made[-1]

    yield make
    for each in made:
        each.end()


def three_shapes() -> list[Object]:
    """Twelve pods: five that fit anything, four of a model, three of eight GPUs."""
    small = [pod(f"small-{n}", 1, ANYWHERE) for n in range(5)]
    picky = [pod(f"picky-{n}", 1, ("V100", "A100")) for n in range(4)]
    return [*small, *picky, *(pod(f"large-{n}", 8, ANYWHERE) for n in range(3))]


def all_at_home(scene: Scene, on: dict[str, str]) -> None:
    """Each pod on a closed node has the toleration of that one alone; no node is left without a pod or a home."""
    nodes, there = scene.homes_of_nodes(), scene.pods_there()
    assert set(nodes) == set(on.values())
    assert NEW_HOME not in nodes.values()
    closed = {name: node for name, node in on.items() if nodes[node]}
    assert {name: [nodes[node]] for name, node in closed.items()} == {name: _homes(there[name]) for name in closed}


def test_every_pod_is_bound_where_it_was_planned(scenes: Callable[..., Scene]) -> None:
    """Twelve pods of three shapes: what the plan bought is all that is lit, and the scheduler binds each to its own."""
    scene = scenes(three_shapes())
    bought = {buy.pool: buy.count for buy in scene.planned().buys}
    on = scene.until_bound()
    all_at_home(scene, on)
    assert {pool: sum(m.pool == pool for m in scene.cloud.machines.values()) for pool in bought} == bought
    assert any(scene.homes_of_nodes().values())


class Died(BaseException):
    """A worker is gone."""


class Dying(KubernetesCluster):
    """Its worker dies as it gives the first toleration."""

    alive = False

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        """Die, or go on."""
        if not self.alive:
            raise Died
        super().tolerate(namespace, pod, uid, home)


def test_a_worker_that_dies_between_purchase_and_toleration(scenes: Callable[..., Scene]) -> None:
    """The next one gives what is missing: nothing is bought twice, and all pods get home."""
    scene = scenes(three_shapes(), Dying)
    with pytest.raises(Died):
        scene.look()
    bought = len(scene.cloud.machines)
    scene.app.deps.cluster.alive = True  # type: ignore[attr-defined]
    all_at_home(scene, scene.until_bound())
    assert len(scene.cloud.machines) == bought > 0


def test_a_pod_that_is_deleted_leaves_its_node_to_the_next(scenes: Callable[..., Scene]) -> None:
    """A pod goes after its purchase, another of its size comes: that is given the node, and nothing more is bought."""
    scene = scenes([pod("gone", 8, ANYWHERE), pod("small", 1, ANYWHERE)])
    scene.look()
    bought = len(scene.cloud.machines)
    scene.api.ask("DELETE", f"{scene.space}/gone", NOTHING, {"gracePeriodSeconds": 0}, JSON)
    scene.make([pod("next", 8, ANYWHERE)])
    on = scene.until_bound()
    assert len(scene.cloud.machines) == bought == len(set(on.values()))


def test_a_pod_that_brings_a_toleration(scenes: Callable[..., Scene]) -> None:
    """One of a home that is nobody's helps it to nothing: it runs on the node bought for it. One of all is told."""
    own = pod("own", 8, ANYWHERE)
    own["spec"]["tolerations"] = [{"key": HOME, "operator": "Equal", "value": "mine", "effect": "NoSchedule"}]
    greedy = pod("greedy", 1, ANYWHERE)
    greedy["spec"]["tolerations"] = [{"key": HOME, "operator": "Exists"}]
    scene = scenes([own, greedy])
    found = [each for each in scene.planned().findings if each.code == "takes-homes"]
    assert [each.subject.partition("/")[2] for each in found] == ["greedy"]
    on = scene.until_bound()
    assert _homes(scene.pods_there()["own"])[1:] == [scene.homes_of_nodes()[on["own"]]]


def test_a_daemon_set_that_a_home_keeps_off_opens_its_node(scenes: Callable[..., Scene]) -> None:
    """Its node is opened, so that the DaemonSet's pod comes; the pod that waits gets there, too."""
    scene = scenes([pod("large", 8, ANYWHERE), pod("small", 1, ANYWHERE)])
    labels = {"matchLabels": {"app": "plugin"}}
    container = {"name": "c", "image": "example.invalid/x"}
    spec = {"containers": [container], "nodeSelector": {"homes-live": scene.mark}}
    template = {"metadata": {"labels": {"app": "plugin"}}, "spec": spec}
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "plugin"}}
    sets = f"/apis/apps/v1/namespaces/{scene.mark}/daemonsets"
    scene.api.ask("POST", sets, NOTHING, {**body, "spec": {"selector": labels, "template": template}}, JSON)
    on = scene.until_bound()
    assert set(scene.homes_of_nodes().values()) == {""}
    assert on["large"]
    scene.api.ask("DELETE", f"{sets}/plugin", NOTHING)
