"""Pods that would bind to a closed node were it open, as far as the node alone says."""

from pilotlight.decide.fit.fit import model_allowed, pods_that_fit
from pilotlight.facts.capacity import Node
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import DRAINING, GPU_MODEL
from pilotlight.facts.workload import PodShape

CLOSES = (DRAINING, "node.kubernetes.io/unschedulable")
"""Keys of the taints of a closed node: ours, and the one that Kubernetes puts on a cordoned node."""


def would_bind(shape: PodShape, node: Node) -> bool:
    """True for a pod that a node would take were it open: by taints, affinity, volumes, GPU model and free room."""
    taints = [taint for taint in node.taints if taint.key not in CLOSES]
    return (
        untolerated_taint(taints, shape.tolerations) is None
        and all(selects(node.labels, terms) for terms in (shape.terms, *shape.reach))
        and model_allowed(shape, node.labels.get(GPU_MODEL, ""))
        and pods_that_fit(shape, node.resource, node.devices, node.slices, node.free) > 0
    )
