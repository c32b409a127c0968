"""Homes on the control plane that KUBECONFIG names: its own scheduler binds each pod to the node bought for it."""

from collections.abc import Callable

import pytest
from homes_scene import ANYWHERE, LIVE, Scene, homes_of, scenes, site, three_shapes

from homes_live import pod
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, NOTHING
from pilotlight.facts.labels import HOME, NEW_HOME

__all__ = ["scenes", "site"]
pytestmark = LIVE


def all_at_home(scene: Scene, on: dict[str, str]) -> None:
    """Each pod on a closed node has the toleration of that one alone; no node is left without a pod or a home."""
    nodes, there = scene.homes_of_nodes(), scene.pods_there()
    assert set(nodes) == set(on.values())
    assert NEW_HOME not in nodes.values()
    closed = {name: node for name, node in on.items() if nodes[node]}
    assert {name: [nodes[node]] for name, node in closed.items()} == {name: homes_of(there[name]) for name in closed}


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
    scene.delete("gone")
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
    assert homes_of(scene.pods_there()["own"])[1:] == [scene.homes_of_nodes()[on["own"]]]


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
