"""Which interruption notices can be real: by kind, by the cloud that says so, and by what was bought of it.

Whatever is not in the table is no word of that cloud's about such an instance: it was forged, or is about another.
``state-change`` and ``lifecycle`` may come to any instance of a cloud that sends them.
"""

from collections.abc import Mapping
from typing import Literal, get_args

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.messages import NoticeKind
from pilotlight.units import Seconds

NoticeCloud = Literal["aws", "gcp", "azure"]

OF_NODE: Literal["node"] = "node"
"""Whose word a notice is that only a mark on the node makes: without the mark it is nobody's."""

WORLD: Literal["world"] = "world"
"""A world stands for any cloud, where it is the cluster's cloud; elsewhere it says nothing."""

_ANY: frozenset[CapacityType] = frozenset(get_args(CapacityType))
_BOUGHT: frozenset[CapacityType] = frozenset(("on-demand", "reserved"))
_SPOT: frozenset[CapacityType] = frozenset(("spot",))

REAL: Mapping[NoticeKind, Mapping[NoticeCloud, frozenset[CapacityType]]] = {
    "spot-interruption": {"aws": _SPOT, "gcp": _SPOT, "azure": _SPOT},
    "rebalance": {"aws": _SPOT},
    "capacity-reservation": {"aws": _BOUGHT},
    "scheduled-change": {"aws": _ANY, "gcp": _ANY, "azure": _ANY},
    "lifecycle": {"aws": _ANY, "azure": _ANY},
    "state-change": {"aws": _ANY, "gcp": _ANY, "azure": _ANY},
    "preempted": {"gcp": _SPOT},
}
"""The capacity types that can get a kind of notice, by the cloud. A cloud that is not named never sends it."""

TAINTS = (
    "cloud.google.com/impending-node-termination",
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/scheduled-maintenance",
    "aws-node-termination-handler/asg-lifecycle-termination",
    "node.cloudprovider.kubernetes.io/shutdown",
    "remediator.kubernetes.azure.com/unschedulable",
    "remediator.aks.microsoft.com/unschedulable",
    "ToBeDeletedByClusterAutoscaler",
)
"""Taints of clouds and of their handlers that say that a node goes."""

SHUTDOWN = "NodeShutdown"
"""Not written by anybody: a kubelet that shuts its node down in order is not ready, for ``SHUTTING_DOWN``."""
SHUTTING_DOWN = "node is shutting down"
"""What kubelets say then (``pkg/kubelet/nodeshutdown``). On GKE ordinary pods have 15 s left, up to 120 s from 1.35."""

CONDITIONS = ("PreemptScheduled", "TerminateScheduled", "RedeployScheduled", SHUTDOWN)
"""Conditions that say so where they are true: AKS writes them from Azure's scheduled events."""

LABELS = ("cloud.google.com/scheduled-maintenance-time",)
"""Labels that say so by being there: GKE tells its hosts' maintenance by them."""

ANNOUNCED = ("aws-node-termination-handler/scheduled-maintenance", "RedeployScheduled", *LABELS)
"""Of these marks what announces maintenance, perhaps for another day: no proof of an order to go now."""


IMPENDING: Seconds = 3300.0
"""GKE sets ``cloud.google.com/impending-node-termination`` about an hour ahead; five minutes of it may be over."""

SHOWN: Mapping[str, tuple[NoticeKind, Seconds]] = {
    "cloud.google.com/impending-node-termination": ("scheduled-change", IMPENDING),
    "PreemptScheduled": ("spot-interruption", 30.0),
    "TerminateScheduled": ("lifecycle", 300.0),
    SHUTDOWN: ("spot-interruption", 15.0),
}
"""The marks that are a notice by themselves, and what is left from when they are seen."""


def capacity_types(kind: str, cloud: str) -> frozenset[CapacityType]:
    """Capacity types that can get this notice from that cloud. A world and a node's own mark stand for any of them."""
    sent = next((by for name, by in REAL.items() if name == kind), {})
    if cloud in (WORLD, OF_NODE):
        return frozenset().union(*sent.values())
    return next((types for name, types in sent.items() if name == cloud), frozenset())
