"""A NodeClaim of our own, made by a NodePool's template, and the Events in which Karpenter says why it deleted one.

Sources: the NodeClaim CRD of karpenter.sh/v1; kubernetes-sigs/karpenter, ``nodeclaim/lifecycle``: a claim that no
machine is left for is deleted at once, with a Warning ``InsufficientCapacityError``; one that is not launched after 5
minutes, or not registered after 15, is deleted too. A claim without the label of a NodePool is no candidate of drift
or consolidation. ``expireAfter`` is 720 h where nothing is written.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from pilotlight.codec.kubernetes.karpenter_objects import GatedNodePool
from pilotlight.codec.kubernetes.typed_objects import Metadata, Wire
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.labels import CAPACITY_TYPE, INSTANCE_TYPE, KARPENTER_NODE_POOL, POOL, ZONE

SHORT = "InsufficientCapacityError"


class _Involved(Wire, frozen=True):
    kind: str = ""
    name: str = ""


class ClaimEvent(Wire, frozen=True):
    """An Event about a claim."""

    metadata: Metadata
    involved_object: _Involved = _Involved()
    reason: str = ""
    message: str = ""
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def at(self) -> datetime | None:
        """When it was seen last."""
        return self.last_timestamp or self.event_time


def node_claim(
    pool: GatedNodePool, called: str, name: str, instance_type: str, capacity_type: CapacityType, zone: str
) -> dict[str, Any]:
    """What is posted for one machine of the pool that its cluster calls so, in a zone where one is named."""
    template = pool.spec.template
    told = {INSTANCE_TYPE: instance_type, CAPACITY_TYPE: capacity_type, **({ZONE: zone} if zone else {})}
    kept = [
        {"key": one.key, "operator": one.operator, **({"values": list(one.values)} if one.values else {})}
        for one in template.spec.requirements
        if one.key not in (*told, KARPENTER_NODE_POOL)
    ]
    marks = {key: value for key, value in template.metadata.labels.items() if key != KARPENTER_NODE_POOL}
    spec = {
        "nodeClassRef": msgspec.to_builtins(template.spec.node_class_ref),
        "requirements": [*_named(told), *kept],
        "expireAfter": "Never",
        "taints": list(template.spec.taints),
        "startupTaints": list(template.spec.startup_taints),
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {**marks, POOL: called}},
        "spec": {key: value for key, value in spec.items() if value},
    }


def _named(told: dict[str, str]) -> Iterator[dict[str, Any]]:
    for key, value in told.items():
        yield {"key": key, "operator": "In", "values": [value]}
