"""Shapes that a plan and a real scheduler once differed on: bought for nothing, or left to wait."""

from collections.abc import Iterator
from typing import Any

from agreement_bed import MARK, ONLY, POOLS
from agreement_claims import DRA, GPU, NVIDIA, claim, claiming, device_class, exactly
from agreement_drawn import volume_of
from agreement_objects import (
    FOUR,
    HOST,
    TWO_ZONES,
    ZONE,
    Object,
    Shape,
    app,
    expr,
    near,
    node,
    other,
    pod,
    pods,
    required,
    spread,
    term,
)

FAMILY = "found"
OF = f"device.attributes['{NVIDIA}']"


def found() -> Iterator[Shape]:
    """All of them."""
    yield from _by_daemons()
    yield from _by_volumes()
    yield from _by_claims()
    yield from _left_waiting()


def _agents(labels: Object, **spec: Any) -> Object:
    """A DaemonSet on every node."""
    both = {"of": "agents", **labels}
    template = pod("x", None, tolerations=[{"operator": "Exists"}], **spec)["spec"]
    made = {"selector": {"matchLabels": both}, "template": {"metadata": {"labels": both}, "spec": template}}
    return other("DaemonSet", "agents", spec=made)


def _by_daemons() -> Iterator[Shape]:
    agents = _agents({"app": "agent"})
    apart, beside = (near(kind, HOST, app("agent")) for kind in ("podAntiAffinity", "podAffinity"))
    yield Shape(FAMILY, "apart from a DaemonSet's pods by host", pods(1, affinity=apart), [agents], FOUR)
    yield Shape(FAMILY, "beside a DaemonSet's pods by host", pods(2, affinity=beside), [agents], FOUR)
    keeps = _agents({"app": "agent"}, affinity=near("podAntiAffinity", HOST, app("train")))
    yield Shape(FAMILY, "a DaemonSet's pods keep it away by host", pods(1, labels={"app": "train"}), [keeps], FOUR)
    over = {"topologySpreadConstraints": [spread(HOST, app("train"))], "labels": {"app": "train"}}
    counted = [_agents({"app": "train"}), node("agreement-cpu", labels={MARK: "SHAPE"}, taints=[ONLY])]
    yield Shape(FAMILY, "spread with a DaemonSet's pods by host", pods(2, **over), counted, FOUR)


def _by_volumes() -> Iterator[Shape]:
    for name, kind in {
        "room in another zone, as its driver tells": "roomy",
        "room that is too small, as its driver tells": "full",
        "a claim whose selected node is gone": "chosen",
    }.items():
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        yield Shape(FAMILY, name, pods(1, volumes=volumes), volume_of("data", kind), TWO_ZONES)


def _by_claims() -> Iterator[Shape]:
    lacks = claim([exactly(f"{OF}.rack == 'r7'"), exactly()])
    yield Shape(FAMILY, "an alternative of an absent attribute", claiming(1), [GPU, lacks], DRA, claims=True)
    wanted = claim(exactly(capacity={"requests": {"memory": "30Gi"}}))
    yield Shape(FAMILY, "an amount of a device's memory", claiming(1), [GPU, wanted], DRA, claims=True)
    cards = device_class("agreement-cards", "device.driver == 'cards.example.test'")
    fabric: Object = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "agreement-fabric"},
        "spec": {
            "driver": "cards.example.test",
            "allNodes": True,
            "pool": {"name": "agreement-fabric", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"card-{n}"} for n in range(4)],
        },
    }
    there = [GPU, cards, fabric, claim(exactly(), name="gpus"), claim(exactly(of=cards), name="cards")]
    yield Shape(FAMILY, "a GPU claim beside a slice of all nodes", claiming(2), there[:4], DRA, claims=True)
    both = [{"name": name, "resourceClaimTemplateName": name} for name in ("gpus", "cards")]
    beside = pods(1, None, resourceClaims=both)
    yield Shape(FAMILY, "a GPU claim and a claim of all nodes' devices", beside, there, DRA, claims=True)


def _left_waiting() -> Iterator[Shape]:
    for name, one in {
        "a selector on gpu.present": expr("nvidia.com/gpu.present", "In", "true"),
        "a selector on gpu.memory": expr("nvidia.com/gpu.memory", "Gt", "30000"),
    }.items():
        yield Shape(FAMILY, name, pods(1, affinity=required(term(one))), pools={"a100": DRA["a100"]})
    halves = [{**one, "metadata": {**one["metadata"], "annotations": _HALF}} for one in pods(2)]
    yield Shape(FAMILY, "two halves that each ask for a whole device", halves)
    cut = {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 7, "nvidia.com/mig-3g.20gb": 2}
    mixed = {"one": POOLS["one"], "four": {**POOLS["four"], "slices": cut}}
    both = {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "2"}
    yield Shape(FAMILY, "a whole GPU and a MIG profile", pods(2, None, limits=both), pools=mixed)
    profiles = {"nvidia.com/mig-1g.10gb": "3", "nvidia.com/mig-3g.20gb": "1"}
    yield Shape(FAMILY, "two MIG profiles", pods(3, None, limits=profiles), pools=mixed)
    zone = required(term(expr(ZONE, "In", "zone-a")))
    yield Shape(
        FAMILY, "halves in one zone", [{**h, "spec": {**h["spec"], "affinity": zone}} for h in halves], pools=FOUR
    )


_HALF = {"pilotlight.dev/gpu-share": "0.5"}
