"""ProvisioningRequests of GKE's queue: what is posted, and what becomes of one.

Sources: the CRD of autoscaling.x-k8s.io/v1, and Google's own autoscaler. A request is Accepted into the queue, then
Provisioned, all its nodes at once, or Failed; both are final. ``ValidUntilSeconds`` after it was made it fails by
itself. Nodes end after ``maxRunDurationSeconds``, 7 days where nothing is said. Ten minutes after Provisioned it is
BookingExpired: nodes without pods are scaled down from then on. CapacityRevoked: its nodes went.
"""

from collections.abc import Mapping
from typing import Any

from pilotlight.codec.kubernetes.typed_objects import Condition, Metadata, Wire
from pilotlight.facts.labels import POOL
from pilotlight.units import Seconds

CLASS = "queued-provisioning.gke.io"
NODE_POOL = "cloud.google.com/gke-nodepool"
OVER = ("Provisioned", "BookingExpired", "CapacityRevoked")
"""Conditions of a request that got its nodes, whatever became of them: its group counts those."""
WAITS_S: Seconds = 6 * 3600
"""A request that waits longer fails: what it would cost is held all that time."""


class _Metadata(Metadata, frozen=True):
    resource_version: str = ""


class _Set(Wire, frozen=True):
    count: int = 0


class _Spec(Wire, frozen=True):
    pod_sets: tuple[_Set, ...] = ()


class _Status(Wire, frozen=True):
    conditions: tuple[Condition, ...] = ()


class ProvisioningRequest(Wire, frozen=True):
    """A request: so many nodes of a pool, all at once."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def nodes(self) -> int:
        """How many nodes it asks for."""
        return sum(each.count for each in self.spec.pod_sets)

    @property
    def over(self) -> bool:
        """True once it got its nodes."""
        return any(each.type in OVER and each.status == "True" for each in self.status.conditions)

    @property
    def failed(self) -> tuple[str, str] | None:
        """Reason and words of a failure; None where it has not failed."""
        found = (each for each in self.status.conditions if each.type == "Failed" and each.status == "True")
        return next(((each.reason, each.message) for each in found), None)


def pod_template(name: str, called: str, gpus: int) -> dict[str, Any]:
    """What one node of a node pool is, by its GPUs, to whom no taint is in the way. No pod is ever made of it."""
    whole = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "node", "image": "registry.k8s.io/pause:3.10", "resources": {"limits": whole}}
    spec = {"nodeSelector": {NODE_POOL: called}, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name, "labels": {POOL: called}},
        "template": {"spec": spec},
    }


def provisioning_request(name: str, called: str, template: str, nodes: int) -> Mapping[str, Any]:
    """What is posted for so many nodes of a node pool, each as the template says."""
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "labels": {POOL: called}},
        "spec": {
            "provisioningClassName": CLASS,
            "parameters": {"ValidUntilSeconds": str(int(WAITS_S))},
            "podSets": [{"count": nodes, "podTemplateRef": {"name": template}}],
        },
    }
