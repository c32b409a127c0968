"""Objects for tests, as kubectl prints them, with only what a test says."""

import json
from collections.abc import Sequence
from typing import Any

from pilotlight.codec.kubernetes.view import view_of
from pilotlight.decide.demand.classify import classify
from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import PodDemand
from pilotlight.tools.cli.kubectl_lists import read_nodes, read_objects, read_pods

NOW = "2026-11-21T00:00:00Z"
POLICY = Policy(
    version=1,
    pools={
        "t4": PoolPolicy(instance_type="g4dn.xlarge", cluster_pool="pool-7f3a"),
        "spotty": PoolPolicy(instance_type="g5.xlarge", capacity_type="spot"),
    },
)


def pod(
    name: str = "p",
    *,
    gpus: object = 1,
    meta: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: object,
) -> dict[str, Any]:
    """A pod that asks for so many GPUs and waits."""
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-{name}",
            "creationTimestamp": NOW,
            **(meta or {}),
        },
        "spec": {"containers": [{"name": "c", "image": "busybox", "resources": resources}], **spec},
        "status": status or {"phase": "Pending", "conditions": [unscheduled()]},
    }


def unscheduled(reason: str = "Unschedulable") -> dict[str, Any]:
    """The condition of a pod that has no node."""
    return {"type": "PodScheduled", "status": "False", "reason": reason}


def node(
    name: str = "n1",
    *,
    allocatable: dict[str, Any] | None = None,
    ready: str = "True",
    labels: dict[str, Any] | None = None,
    **spec: object,
) -> dict[str, Any]:
    """A node with two T4s of pool t4, ready since NOW."""
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "creationTimestamp": NOW,
            "labels": {"pilotlight.dev/pool": "t4", "nvidia.com/gpu.product": "Tesla-T4"} if labels is None else labels,
        },
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"}
            if allocatable is None
            else allocatable,
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": NOW}],
        },
    }


def view(
    pods: list[dict[str, Any]],
    nodes: Sequence[dict[str, Any]] = (),
    objects: list[dict[str, Any]] | None = None,
    **policy: object,
) -> ClusterView:
    """The view of objects; ``policy`` are keys beside the pools."""
    files = [] if objects is None else [(_list(objects), "objects.json")]
    return view_of(
        read_pods(_list(pods), "pods.json"),
        read_nodes(_list(list(nodes)), "nodes.json"),
        read_objects(files),
        policy=Policy(version=1, pools=POLICY.pools, **policy),  # type: ignore[arg-type]
        classify=classify,
    )


def only_demand(seen: ClusterView) -> PodDemand:
    """The one pod that waits."""
    (demand,) = seen.pending
    return demand


def only_node(seen: ClusterView) -> Node:
    """The one GPU node."""
    (found,) = seen.nodes
    return found


def _list(items: list[dict[str, Any]]) -> bytes:
    return json.dumps({"kind": "List", "items": items}).encode()
