"""Pods and policies of others around homes on the control plane that KUBECONFIG names: a tenant who takes a home, an
admission policy that refuses our patches, gangs, pods that a queue holds back, and a second cluster of the same store.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest
import yaml
from homes_scene import ANYWHERE, LIVE, Object, Scene, homes_of, making, scenes, site, three_shapes

from homes_live import pod
from live_cloud import MANIFESTS, eventually
from live_run import Site, admitted
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.pod_tolerations import toleration
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import BadRequest, Forbidden, Unavailable
from pilotlight.facts.labels import GANG, GANG_SIZE
from pilotlight.tools.install.connect_account import PLACES

__all__ = ["scenes", "site"]
pytestmark = LIVE
CONFIGS = [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
Scenes = Callable[..., Scene]


@contextmanager
def in_force(api: Api, objects: list[Object]) -> Iterator[None]:
    """Admission policies and their bindings, taken away again."""
    made: list[str] = []
    try:
        for each in objects:
            path = PLACES[each["kind"]]
            api.ask("POST", path, NOTHING, each, JSON)
            made.append(f"{path}/{each['metadata']['name']}")
        yield
    finally:
        for path in reversed(made):
            with suppress(Missing):
                api.ask("DELETE", path, NOTHING)


def _raises(problem: type[Exception], do: Callable[[], object]) -> None:
    try:
        do()
    except problem:
        return
    raise Unavailable("it is let through yet")


def thief(home: str) -> Object:
    """A small pod that brings the toleration of a home."""
    made = pod("thief", 1, ANYWHERE)
    made["spec"]["tolerations"] = [toleration(home)]
    return made


def one_dear_home(scenes: Scenes) -> tuple[Scene, str]:
    """Two large pods and a small one whose nodes are on their way, and the home of the first."""
    scene = scenes([pod("large-a", 8, ANYWHERE), pod("large-b", 8, ANYWHERE), pod("small", 1, ANYWHERE)])
    scene.look()
    [home] = homes_of(scene.pods_there()["large-a"])
    return scene, home


def test_a_pod_that_takes_a_home_by_itself(scenes: Scenes) -> None:
    """Where nobody refuses it, it takes room that was bought for another: it is told by name, and all are bound."""
    scene, home = one_dear_home(scenes)
    time.sleep(1.0)  # Times of creation are whole seconds: of that of the look nobody knows who came first.
    scene.make([thief(home)])
    found = [each for each in scene.planned().findings if each.code == "takes-homes"]
    assert [each.subject.partition("/")[2] for each in found] == ["thief"]
    on = scene.until_bound()
    scene.judge(on, unused=1, again=2)
    nodes = [name for name in scene.cloud.machines if "p4d" in name]
    assert len(nodes) <= 3


def test_a_tenant_of_a_closed_namespace(scenes: Scenes) -> None:
    """With the namespace's label the policy refuses such a pod; ours get home as before."""
    scene, home = one_dear_home(scenes)
    closed = {"metadata": {"labels": {"pilotlight.dev/homes": "closed"}}}
    scene.api.ask("PATCH", f"/api/v1/namespaces/{scene.mark}", NOTHING, closed, MERGE_PATCH)
    text = (MANIFESTS / "admission" / "homes.yaml").read_text("utf-8")
    brings = partial(scene.api.ask, "POST", f"{scene.space}?dryRun=All", NOTHING, thief(home), JSON)
    with in_force(scene.api, list(yaml.safe_load_all(text))):
        eventually(partial(_raises, BadRequest, brings))
        on = scene.until_bound()
    assert set(on) == {"large-a", "large-b", "small"}
    scene.judge(on)


def no_tolerations(mark: str) -> list[Object]:
    """A tenant's own policy: nobody changes tolerations of pods in this namespace (403)."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["UPDATE"]}
    chosen = {"matchLabels": {"kubernetes.io/metadata.name": mark}}
    same = "object.spec.tolerations == oldObject.spec.tolerations"
    refuses = {"expression": same, "message": "tolerations are the platform team's", "reason": "Forbidden"}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"namespaceSelector": chosen, "resourceRules": [rule]},
        "validations": [refuses],
    }
    group, name = {"apiVersion": "admissionregistration.k8s.io/v1"}, {"name": mark}
    bound = {"policyName": mark, "validationActions": ["Deny"]}
    return [
        {**group, "kind": "ValidatingAdmissionPolicy", "metadata": name, "spec": spec},
        {**group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": name, "spec": bound},
    ]


def test_tolerations_that_another_policy_refuses(scenes: Scenes) -> None:
    """Each patch of a pod is answered 403: nodes are opened once they are ready, and every pod is bound somewhere."""
    scene = scenes(three_shapes())
    with in_force(scene.api, no_tolerations(scene.mark)):
        name, found = next(iter(scene.pods_there().items()))
        change = {"spec": {"tolerations": [*found["spec"]["tolerations"], toleration("x")]}}
        path = f"{scene.space}/{name}?dryRun=All"
        eventually(partial(_raises, Forbidden, partial(scene.api.ask, "PATCH", path, NOTHING, change, MERGE_PATCH)))
        on = scene.until_bound()
    assert all(not homes_of(each) for each in scene.pods_there().values())
    nodes = scene.homes_of_nodes()  # Which of them are used is the scheduler's choice: nobody keeps it from any.
    assert {nodes[node] for node in on.values()} == {""}


def member(name: str, group: str, of: int, *, gate: str = "") -> Object:
    """A pod of eight GPUs of a group that starts together; a gate holds it back from the scheduler."""
    made = pod(name, 8, ANYWHERE)
    made["metadata"] |= {
        "labels": {"scheduling.x-k8s.io/pod-group": group, "kueue.x-k8s.io/pod-group-name": group},
        "annotations": {GANG: group, GANG_SIZE: str(of), "kueue.x-k8s.io/pod-group-total-count": str(of)},
    }
    if gate:
        made["spec"]["schedulingGates"] = [{"name": gate}]
    return made


def test_a_gang_beside_small_pods(scenes: Scenes) -> None:
    """Three pods that start together get a node each, and small ones that wait with them get none of it."""
    small = [pod(f"small-{n}", 1, ANYWHERE) for n in range(4)]
    scene = scenes([*(member(f"gang-{n}", "train", 3) for n in range(3)), *small])
    on = scene.until_bound()
    scene.judge(on)
    gang = {on[name] for name in on if name.startswith("gang")}
    assert len(gang) == 3
    assert not gang & {on[each["metadata"]["name"]] for each in small}


def test_a_pod_set_whose_gates_are_lifted(scenes: Scenes) -> None:
    """Nothing is bought for pods that a queue holds back; once their gates are lifted each is bound to its node."""
    held = [member(f"held-{n}", "set", 2, gate="kueue.x-k8s.io/admission") for n in range(2)]
    scene = scenes([*held, pod("small", 1, ANYWHERE)])
    on = scene.until_bound("held-0", "held-1")
    assert {machine.pool for machine in scene.cloud.machines.values()} == {scene.cloud.machines[on["small"]].pool}
    for each in held:
        path = f"{scene.space}/{each['metadata']['name']}"
        scene.api.ask("PATCH", path, NOTHING, {"spec": {"schedulingGates": None}}, MERGE_PATCH)
    on = scene.until_bound()
    scene.judge(on)
    assert len({on["held-0"], on["held-1"], on["small"]}) == 3


@pytest.fixture
def second() -> Iterator[Site]:
    """Our account on the second control plane that KUBECONFIG names."""
    with admitted(CONFIGS[1]) as found:
        yield found


@pytest.mark.skipif(len(CONFIGS) < 2, reason="KUBECONFIG names no second control plane")
def test_two_clusters_of_one_store(site: Site, second: Site) -> None:
    """Their pods have equal names and are bought for at once: each is bound in its own cluster, and as many lit."""
    store = MemoryState(SystemClock())
    with making(site) as here, making(second) as there:
        both = [make(three_shapes(), KubernetesCluster, seams={"state": store}) for make in (here, there)]
        for scene in both:
            scene.look()
        for scene in both:
            scene.judge(scene.until_bound(), again=len(three_shapes()))
        assert len(both[0].cloud.machines) == len(both[1].cloud.machines)
