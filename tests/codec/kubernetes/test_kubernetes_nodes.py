"""Nodes: what is free, what is on them, and what would stop a drain."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from kubernetes_objects import NOW, node, only_node, pod, view

from pilotlight.codec.kubernetes.nodes.gpu_models import gpu_model
from pilotlight.codec.kubernetes.typed_objects import KubeNode
from pilotlight.facts.policy import Policy
from pilotlight.tools.checkup.scalers import seen_node

READY_AT = datetime(2026, 11, 21, tzinfo=UTC)


def bound(name: str = "b", *, gpus: object = 1, meta: dict[str, Any] | None = None, **spec: object) -> dict[str, Any]:
    """A pod that runs on n1."""
    return pod(name, gpus=gpus, meta=meta, status={"phase": "Running"}, nodeName="n1", **spec)


def done(name: str, finished_at: str, gpus: object = 1) -> dict[str, Any]:
    """A pod that ended on n1."""
    ended = {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"finishedAt": finished_at}}}]}
    return pod(name, gpus=gpus, status=ended, nodeName="n1")


def test_room_is_what_is_allocatable_less_what_is_bound() -> None:
    """GPUs, CPU, memory and pod slots of bound pods are taken off."""
    one = bound(containers=[{"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "1500m", "memory": "4Gi"}}}])
    seen = only_node(view([one], [node()]))
    assert (seen.devices, seen.free.cpu_milli, seen.free.memory, seen.free.pods) == ((0, 1000), 2500, 12 * 2**30, 109)


def test_finished_pods_hold_nothing() -> None:
    """A pod that ended gives its GPU back."""
    assert only_node(view([done("d", NOW)], [node()])).devices == (1000, 1000)


def test_shares_are_packed() -> None:
    """Shares of GPUs are taken to lie together."""
    share = {"annotations": {"pilotlight.dev/gpu-share": "0.25"}}
    seen = only_node(view([bound(n, gpus=0, meta=share) for n in "ab"], [node()]))
    assert sorted(seen.devices) == [500, 1000]


def test_a_nominated_pod_holds_its_place() -> None:
    """Where preemption makes room for a pod, that room is taken."""
    waiting = pod(status={"phase": "Pending", "nominatedNodeName": "n1"})
    seen = only_node(view([waiting], [node()]))
    assert (seen.devices, seen.idle_since) == ((0, 1000), None)


def test_slices() -> None:
    """MIG slices and shared replicas are counted by name."""
    room = {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/mig-1g.10gb": "7"}
    one = pod(gpus=0, nodeName="n1", status={"phase": "Running"})
    one["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/mig-1g.10gb": 2}}
    assert only_node(view([one], [node(allocatable=room)])).slices == {"nvidia.com/mig-1g.10gb": 5}


def test_devices_go_by_their_resource_name() -> None:
    """AMD's GPUs are AMD's: a node says the name of its devices, and a pod of another name takes none of them."""
    room = {"cpu": "4", "memory": "16Gi", "amd.com/gpu": "2", "hugepages-2Mi": "8Mi", "hugepages-1Gi": "0"}
    running = pod("a", gpus=0, nodeName="n1", status={"phase": "Running"})
    running["spec"]["containers"][0]["resources"] = {"limits": {"amd.com/gpu": 1, "hugepages-2Mi": "2Mi"}}
    seen = only_node(view([running], [node(allocatable=room)]))
    assert (seen.resource, seen.devices, seen.slices) == ("amd.com/gpu", (0, 1000), {})
    assert seen.free.other == (("hugepages-2Mi", 6 << 20),)


def test_cpu_nodes_are_left_out() -> None:
    """A node without GPUs that belongs to no pool of the policy is none of ours."""
    assert view([], [node(allocatable={"cpu": "4"}, labels={})]).nodes == ()


NOT_READY = {
    "NotReady": node(ready="False"),
    "its kubelet is silent": node(ready="Unknown"),
    "its GPUs are not allocatable yet": node(allocatable={"cpu": "4", "pods": "110", "nvidia.com/gpu": "0"}),
    "its device plugin has not come yet": node(allocatable={"cpu": "4", "pods": "110"}),
    "the taint that says so is still there": node(
        taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    ),
}


@pytest.mark.parametrize("one", NOT_READY.values(), ids=NOT_READY.keys())
def test_a_gpu_node_that_takes_no_pods_yet(one: dict[str, Any]) -> None:
    """A node of ours is ready only when it is Ready and its GPUs are allocatable."""
    assert not only_node(view([], [one])).ready


HOMED = {
    "new": ([{"key": "pilotlight.dev/home", "value": "new", "effect": "NoSchedule"}], "new"),
    "named": ([{"key": "pilotlight.dev/home", "value": "17-a-0-3", "effect": "NoSchedule"}], "17-a-0-3"),
    "born without a value": ([{"key": "pilotlight.dev/home", "effect": "NoSchedule"}], "new"),
    "of an effect that no toleration of ours bears": (
        [{"key": "pilotlight.dev/home", "value": "new", "effect": "NoExecute"}],
        "!",
    ),
    "of both effects": (
        [
            {"key": "pilotlight.dev/home", "value": "17-a-0-3", "effect": "NoSchedule"},
            {"key": "pilotlight.dev/home", "value": "17-a-0-3", "effect": "NoExecute"},
        ],
        "!",
    ),
    "of an effect that keeps nobody off": (
        [{"key": "pilotlight.dev/home", "value": "new", "effect": "PreferNoSchedule"}],
        "",
    ),
    "open": ([], ""),
}


@pytest.mark.parametrize(("taints", "home"), HOMED.values(), ids=HOMED.keys())
def test_the_home_of_a_node(taints: list[dict[str, Any]], home: str) -> None:
    """The value of our home taint is a fact of its own, and none of the node's taints."""
    own = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    seen = only_node(view([], [node(taints=[own, *taints])]))
    assert (seen.home, [taint.key for taint in seen.taints]) == (home, ["nvidia.com/gpu"])


def test_idle_since_the_last_gpu_pod_ended() -> None:
    """A node is idle since its last GPU pod ended; CPU pods do not count."""
    pods = [
        done("a", "2026-11-21T01:00:00Z"),
        done("b", "2026-11-21T02:00:00Z"),
        done("cpu", "2026-11-21T09:00:00Z", gpus=0),
    ]
    assert only_node(view(pods, [node()])).idle_since == datetime(2026, 11, 21, 2, tzinfo=UTC)


def test_idle_since_ready_when_nothing_ran() -> None:
    """A node that never had a GPU pod is idle since it became ready."""
    assert only_node(view([], [node()])).idle_since == READY_AT


def test_busy_is_not_idle() -> None:
    """A node with a GPU pod is not idle, one with a DaemonSet's or a CPU pod is."""
    daemon = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}
    assert only_node(view([bound()], [node()])).idle_since is None
    assert only_node(view([bound(meta=daemon), bound("cpu", gpus=0)], [node()])).idle_since == READY_AT


def test_in_doubt_a_pod_holds_a_gpu() -> None:
    """A bound pod whose request cannot be read keeps its node, and is a finding."""
    seen = view([bound(gpus="NaN")], [node()])
    assert only_node(seen).gpu_pods
    assert only_node(seen).devices == (0, 0)
    assert [f.code for f in seen.findings] == ["bad-quantity"]


def test_a_device_claim_holds_a_gpu() -> None:
    """A bound pod with a ResourceClaim keeps its node."""
    assert only_node(view([bound(gpus=0, resourceClaims=[{"name": "g"}])], [node()])).gpu_pods


def test_an_unreadable_node_is_a_finding() -> None:
    """A node whose allocatable cannot be read is named and left alone."""
    seen = view([], [node(allocatable={"nvidia.com/gpu": "many"})])
    assert seen.nodes == ()
    assert "status.allocatable[nvidia.com/gpu]" in seen.findings[0].message


POOLS = {
    "our label": ({"pilotlight.dev/pool": "t4"}, "t4"),
    "our label with the cloud's name": ({"pilotlight.dev/pool": "pool-7f3a"}, "t4"),
    "Civo's": ({"kubernetes.civo.com/civo-node-pool": "pool-7f3a"}, "t4"),
    "GKE's": ({"cloud.google.com/gke-nodepool": "spotty"}, "spotty"),
    "EKS's": ({"eks.amazonaws.com/nodegroup": "other"}, "other"),
    "none": ({}, ""),
}


@pytest.mark.parametrize(("labels", "pool"), POOLS.values(), ids=POOLS.keys())
def test_pool_of_a_node(labels: dict[str, Any], pool: str) -> None:
    """A node's pool is found by our label, else by the cloud's, under the policy's name."""
    assert only_node(view([], [node(labels=labels)])).pool == pool


CAPACITY = {
    "Karpenter": ({"karpenter.sh/capacity-type": "spot"}, "spot"),
    "GKE": ({"cloud.google.com/gke-spot": "true"}, "spot"),
    "GKE's flex-start": ({"cloud.google.com/gke-flex-start": "true"}, "flex-start"),
    "EKS": ({"eks.amazonaws.com/capacityType": "SPOT"}, "spot"),
    "EKS capacity blocks": ({"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"}, "reserved"),
    "the policy's word where no label says": ({"pilotlight.dev/pool": "spotty"}, "spot"),
    "nothing says": ({}, "on-demand"),
}


@pytest.mark.parametrize(("labels", "kind"), CAPACITY.values(), ids=CAPACITY.keys())
def test_capacity_type_of_a_node(labels: dict[str, Any], kind: str) -> None:
    """Spot and reserved nodes are told by each cloud's labels."""
    assert only_node(view([], [node(labels=labels)])).capacity_type == kind


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("Tesla-T4", "T4"),
        ("NVIDIA-A100-SXM4-40GB", "A100"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100"),
        ("NVIDIA-A10G", "A10G"),
        ("Tesla-V100-SXM2-16GB", "V100"),
        ("NVIDIA-L4", "L4"),
        ("NVIDIA-L40S-SHARED", "L40S"),
        ("NVIDIA-H100-80GB-HBM3", "H100"),
        ("NVIDIA-GH200-480GB", "GH200"),
        ("AMD-Instinct-MI300X-OAM", "MI300X"),
        ("NVIDIA-GeForce-RTX-3090", "RTX-3090"),
        ("", ""),
    ],
)
def test_models_by_the_catalogues_names(product: str, model: str) -> None:
    """The product label is read as the catalogue's name of the model."""
    assert gpu_model(product) == model


BUDGET = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "keep", "namespace": "team-a"},
    "spec": {"selector": {"matchLabels": {"app": "db"}}},
    "status": {"disruptionsAllowed": 0},
}
DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}

BLOCKS = {
    "safe-to-evict=false": (
        bound(meta={"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}),
        "safe-to-evict=false",
    ),
    "do-not-disrupt": (bound(meta={"annotations": {"karpenter.sh/do-not-disrupt": "true"}}), "do-not-disrupt=true"),
    "an exhausted budget": (bound(meta={"labels": {"app": "db"}}), "PodDisruptionBudget keep"),
    "local storage": (bound(volumes=[{"name": "v", "emptyDir": {}}]), "local storage"),
    "a host path": (bound(volumes=[{"name": "v", "hostPath": {"path": "/x"}}]), "local storage"),
    "memory is no storage": (bound(volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}]), ""),
    "local storage its owner gives up": (
        bound(
            volumes=[{"name": "v", "emptyDir": {}}],
            meta={"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}},
        ),
        "",
    ),
    "a DaemonSet's local storage": (bound(volumes=[{"name": "v", "emptyDir": {}}], meta=DAEMON), ""),
    "an ordinary pod": (bound(), ""),
}


@pytest.mark.parametrize(("one", "words"), BLOCKS.values(), ids=BLOCKS.keys())
def test_what_would_stop_a_drain(one: dict[str, Any], words: str) -> None:
    """Only what truly stops an eviction is listed."""
    (onboard,) = only_node(view([one], [node()], [BUDGET])).pods
    assert words in onboard.blocks
    assert bool(onboard.blocks) == bool(words)


def test_cordoned() -> None:
    """A cordoned node takes nothing new; with our taint it is marked too."""
    cordoned = only_node(view([], [node(unschedulable=True)]))
    assert (cordoned.schedulable, cordoned.marked) == (False, False)
    ours = {"key": "pilotlight.dev/draining", "value": "marked", "effect": "NoSchedule"}
    marked = only_node(view([], [node(taints=[ours])]))
    assert (marked.schedulable, marked.marked) == (False, True)


@pytest.mark.parametrize(
    ("provider", "cloud", "instance"),
    [
        ("aws:///us-east-1a/i-0abc", "aws", "i-0abc"),
        ("gce://acme/europe-west4-b/gke-x9kz", "gcp", "gke-x9kz"),
        ("civo://6f1c", "civo", "6f1c"),
        (
            "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets"
            "/aks-gpu-41720938-vmss/virtualMachines/4",
            "azure",
            "aks-gpu-41720938-vmss_4",
        ),
        ("", "", ""),
    ],
)
def test_the_clouds_id(provider: str, cloud: str, instance: str) -> None:
    """Whose it is and what its cloud's events call it: the last part, and of a scale set's machine both."""
    found = only_node(view([], [node(providerID=provider)]))
    assert (found.cloud, found.instance) == (cloud, instance)


def test_a_condition_that_says_that_it_goes() -> None:
    """What AKS writes of scheduled events is kept where it is true; other conditions are not."""
    made = node()
    made["status"]["conditions"] += [
        {"type": "PreemptScheduled", "status": "True"},
        {"type": "RedeployScheduled", "status": "False"},
        {"type": "FreezeScheduled", "status": "True"},
    ]
    assert only_node(view([], [made])).conditions == ("PreemptScheduled",)


def test_a_checkup_counts_parts_of_gpus() -> None:
    """What a check-up sees of a node that is cut up are its parts by name; an amount that is none counts as none."""
    room = {"cpu": "4", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu.shared": "many"}
    found = seen_node(msgspec.convert(node(allocatable=room), KubeNode), Policy(version=1, pools={}))
    assert (found.gpus, found.slices, found.has_gpu) == (0, {"nvidia.com/mig-1g.10gb": 7}, True)


def test_a_kubelet_that_shuts_its_node_down_says_so_in_why_it_is_not_ready() -> None:
    """Read as the condition NodeShutdown, which nobody writes; any other reason is none."""
    for message, shown in (("[container runtime is down, node is shutting down]", ("NodeShutdown",)), ("tired", ())):
        made = node("n1", ready="False")
        for condition in made["status"]["conditions"]:
            condition["message"] = message
        (found,) = view([], [made]).nodes
        assert found.conditions == shown
