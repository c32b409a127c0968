"""Pods of one template, whose parts a look keeps once: each reads as it would by itself."""

import json
from random import Random
from typing import Any

import msgspec
import pytest

from pilotlight.adapters.cluster.kubernetes.listing import SharedTemplates
from pilotlight.codec.kubernetes.companions import Objects
from pilotlight.codec.kubernetes.pages import PodOnNode, listing
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Pod
from pilotlight.codec.kubernetes.view import view_of
from pilotlight.decide.demand.classify import classify
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.policy import Policy, PoolPolicy

AT = "2026-11-20T12:00:00Z"
POLICY = Policy(version=1, pools={"a": PoolPolicy(instance_type="p3.2xlarge")})
OWN = "pilotlight.dev/"
SAID: dict[str, tuple[str, ...]] = {
    f"{OWN}workload-class": ("batch", "serving"),
    f"{OWN}gpu-models": ("A100", "T4,V100", "any"),
    f"{OWN}gpu-share": ("0.5", "no"),
    f"{OWN}checkpoint-seconds": ("600", "-1"),
    f"{OWN}checkpointed-at": ("2026-11-20T11:00:00Z",),
    f"{OWN}deadline": ("2026-11-21T00:00:00Z",),
    f"{OWN}work": ("2h",),
    f"{OWN}gang": ("g", "h"),
    "kubernetes.io/config.mirror": ("m",),
    "cluster-autoscaler.kubernetes.io/safe-to-evict": ("false", "true"),
    "example.com/other": ("x",),
}
DIFFERS: dict[str, tuple[Any, ...]] = {
    "tolerations": ([{"key": f"{OWN}home", "value": "h", "effect": "NoSchedule"}], [{"operator": "Exists"}]),
    "priority": (5,),
    "activeDeadlineSeconds": (60, 600),
    "terminationGracePeriodSeconds": (1, 1e9),
    "nodeSelector": ({"gpu": "a"}, {"gpu": "b"}),
    "volumes": ([{"name": "v", "emptyDir": {}}], [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
    "schedulerName": ("volcano",),
    "preemptionPolicy": ("Never",),
    "hostNetwork": (True,),
    "initContainers": ([{"name": "i", "resources": {"limits": {"cpu": "9"}}}],),
    "resourceClaims": ([{"name": "c"}],),
    "containers": ([{"name": "c", "image": "other", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],),
}


def _pod(draw: Random, name: str, node: str) -> dict[str, Any]:
    """A pod of one of two Jobs that differs from its others in nothing, or in one or two parts."""
    job = draw.choice(("train", "serve"))
    running = {"name": "c", "restartCount": draw.choice((0, 0, 0, 1)), "state": {"running": {"startedAt": AT}}}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": name}
    ask = {"limits": {"nvidia.com/gpu": "1", "cpu": "1"}}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": job, "args": [job], "resources": ask}]}
    meta: dict[str, Any] = {
        "name": name,
        "namespace": draw.choice(("ml", "ml", "web")),
        "uid": f"uid-{name}",
        "creationTimestamp": AT,
        "labels": {"team": "a"} if draw.random() < 0.8 else {"team": "b", "workload-type": "notebook"},
        "annotations": {},
        "ownerReferences": [{"kind": draw.choice(("Job", "Job", "DaemonSet")), "name": job, "controller": True}],
    }
    for key in draw.sample(sorted(DIFFERS), draw.choice((0, 0, 0, 1, 2))):
        spec[key] = draw.choice(DIFFERS[key])
    for key in draw.sample(sorted(SAID), draw.choice((0, 0, 0, 1, 2))):
        meta["annotations"][key] = draw.choice(SAID[key])
    if node:
        spec["nodeName"] = node
        status = {"phase": "Running", "startTime": AT, "containerStatuses": [running]}
    else:
        status = {"phase": "Pending", "conditions": [waits]}
    return {"metadata": meta, "spec": spec, "status": status}


def _node(name: str, capacity_type: str) -> dict[str, Any]:
    labels = {f"{OWN}pool": "a", "karpenter.sh/capacity-type": capacity_type}
    room = {"cpu": "64", "pods": "110", "nvidia.com/gpu": "8"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": room}}


def _seen(pods: list[Pod], nodes: list[dict[str, Any]]) -> ClusterView:
    read = listing(KubeNode).decode(json.dumps({"items": nodes}).encode()).items or []
    return view_of(pods, read, Objects(), policy=POLICY, classify=classify)


@pytest.mark.parametrize("seed", range(60))
def test_a_pod_reads_as_it_does_by_itself(seed: int) -> None:
    """What is read once of a template is what each of its pods says, whatever one of them says of its own."""
    draw = Random(seed)
    nodes = [_node("n0", "on-demand"), _node("n1", "spot")]
    wire = [_pod(draw, f"p{n}", draw.choice(("", "n0", "n1"))) for n in range(40)]
    together, apart = SharedTemplates(), list[Pod]()
    shared = list[Pod]()
    for one in wire:
        body = json.dumps({"items": [one]}).encode()
        on_node = "nodeName" in one["spec"]
        shared += map(together, listing(PodOnNode if on_node else Pod).decode(body).items or ())
        apart += listing(Pod).decode(body).items or ()
    assert _seen(shared, nodes) == _seen(apart, nodes)


RESIZE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}


def _on_node(*conditions: object) -> Pod:
    made = _pod(Random(1), "p", "n0")
    made["status"]["conditions"] = conditions
    page = listing(PodOnNode).decode(json.dumps({"items": [made]}).encode())
    assert page.items
    return SharedTemplates()(page.items[0])


def test_of_a_pod_on_a_node_only_the_condition_of_a_resize_is_kept() -> None:
    """The others tell why a pod waits; they may say what they like."""
    kept = _on_node({"type": "Ready", "status": "True"}, {"type": 7}, 5)
    assert (kept.unread, kept.status.conditions) == ("", ())
    resized = _on_node({"type": "Ready", "status": "True"}, RESIZE)
    assert [msgspec.to_builtins(c)["reason"] for c in resized.status.conditions] == ["Infeasible"]


def test_a_condition_of_a_resize_that_cannot_be_read_costs_its_pod_alone() -> None:
    """The pod is told as one that cannot be read, and holds its node."""
    odd = _on_node({**RESIZE, "reason": 5})
    assert odd.unread == "status.conditions[0].reason: is int, not str"
    (node,) = _seen([odd], [_node("n0", "on-demand")]).nodes
    assert node.devices == (0,) * 8
