"""GPU model and machine that a node's labels name, in one vocabulary over the clouds.

Sources: NVIDIA GPU feature discovery, Karpenter, GKE, EKS, AKS and Civo node labels.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from pilotlight.facts import labels
from pilotlight.facts.capacity import CapacityType

POOL_LABELS = (
    labels.POOL,
    "kubernetes.civo.com/civo-node-pool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
)
"""Where a node says its pool, ours first."""
_CAPACITY: Mapping[tuple[str, str], CapacityType] = {
    (labels.CAPACITY_TYPE, "on-demand"): "on-demand",
    (labels.CAPACITY_TYPE, "spot"): "spot",
    (labels.CAPACITY_TYPE, "reserved"): "reserved",
    (labels.CAPACITY_TYPE, "flex-start"): "flex-start",
    ("cloud.google.com/gke-flex-start", "true"): "flex-start",
    ("cloud.google.com/gke-spot", "true"): "spot",
    ("cloud.google.com/gke-preemptible", "true"): "spot",
    ("eks.amazonaws.com/capacityType", "ON_DEMAND"): "on-demand",
    ("eks.amazonaws.com/capacityType", "SPOT"): "spot",
    ("eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"): "reserved",
    ("kubernetes.azure.com/scalesetpriority", "spot"): "spot",
}
_BRANDS = r"^(?:NVIDIA|AMD|Tesla|Quadro|Instinct|GeForce)[-_ ]"
_MODEL = r"^[A-Z]{1,3}\d+[A-Z]{0,2}(?=$|[-_ ])"


def pool_label(node_labels: Mapping[str, str]) -> str:
    """The name of a node's pool as its labels give it, ours first, or empty."""
    for name in POOL_LABELS:
        if found := node_labels.get(name):
            return found
    return ""


def capacity_type(node_labels: Mapping[str, str]) -> CapacityType | None:
    """How a node is paid for, or None where no label says."""
    for (name, value), kind in _CAPACITY.items():
        if node_labels.get(name) == value:
            return kind
    return None


@lru_cache(maxsize=256)
def gpu_model(product: str) -> str:
    """A product label as the catalogue names models: "NVIDIA-A100-SXM4-40GB" is "A100", "Tesla-T4" is "T4".

    Products without such a name keep theirs, less the brand: "NVIDIA-GeForce-RTX-3090" is "RTX-3090".
    """
    name = product
    while (shorter := re.sub(_BRANDS, "", name, flags=re.IGNORECASE)) != name:
        name = shorter
    match = re.match(_MODEL, name, re.IGNORECASE)
    return match.group().upper() if match else name


def instance_id(provider_id: str) -> str:
    """The cloud's id of an instance: the last part of "aws:///us-east-1a/i-0abc".

    Azure numbers the machines of a scale set, and its events call them by both: "vmss_4".
    """
    *_, scale_set, machines, last = ("", "", *provider_id.split("/"))
    return f"{scale_set}_{last}" if machines == "virtualMachines" and "virtualMachineScaleSets" in provider_id else last


def cloud_of(provider_id: str) -> str:
    """Whose an instance is, as notices say it; empty where its node names no provider."""
    scheme = provider_id.partition("://")[0] if "://" in provider_id else ""
    return {"gce": "gcp"}.get(scheme, scheme)
