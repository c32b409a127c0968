"""A NodeClaim of our own, made by a NodePool's template, and the Events in which Karpenter says why it deleted one.

Sources: the NodeClaim CRD of karpenter.sh/v1; kubernetes-sigs/karpenter, ``nodeclaim/lifecycle``: a claim that no
machine is left for is deleted at once, with a Warning ``InsufficientCapacityError``; one that is not launched after 5
minutes, or not registered after 15, is deleted too. A claim without the label of a NodePool is no candidate of drift
or consolidation. ``expireAfter`` is 720 h where nothing is written.
"""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from pilotlight.codec.kubernetes.karpenter_objects import GatedNodePool, NodeClaim
from pilotlight.codec.kubernetes.typed_objects import Metadata, Wire
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.labels import CAPACITY_TYPE, INSTANCE_TYPE, KARPENTER_NODE_POOL, POOL, STEP, ZONE
from pilotlight.facts.nodes.pool_state import LateRefusal, Reason

SHORT = "InsufficientCapacityError"
LONGEST_NAME, HASH = 63, 8
_SHORTAGE = re.compile(r"(?i)capacity|insufficient|exhausted|not ?available|allocation ?failed|stock")
_QUOTA = re.compile(r"(?i)quota|(?<!request)(?<!request )limit ?exceeded|MaxSpotInstanceCountExceeded")
"""A limit of requests is none of machines."""


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
    pool: GatedNodePool, called: str, step: str, instance_type: str, capacity_type: CapacityType, zone: str
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
        "metadata": {"name": claim_name(called, step), "labels": {**marks, POOL: called}, "annotations": {STEP: step}},
        "spec": {key: value for key, value in spec.items() if value},
    }


def claim_name(called: str, step: str) -> str:
    """Name of a step's claim in the pool that its cluster calls so: the same whoever sends it."""
    return f"{stem(called)}-{hashlib.sha256(step.encode()).hexdigest()[:HASH]}"


def stem(called: str) -> str:
    """What the names of a pool's claims begin with."""
    return called[: LONGEST_NAME - HASH - 1].rstrip("-.")


def step_of(claim: NodeClaim) -> str:
    """The step that a claim says it was made by; empty where it says none."""
    return claim.metadata.annotations.get(STEP, "")


def is_proven(claim: NodeClaim, called: str) -> bool:
    """True where a claim's name is the hash of the step that it names: then it is ours, of that pool."""
    return claim.metadata.name == claim_name(called, step_of(claim))


def with_label(claim: NodeClaim, called: str) -> NodeClaim:
    """A claim with the label of its pool."""
    labels = {**claim.metadata.labels, POOL: called}
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, labels=labels))


def _named(told: dict[str, str]) -> Iterator[dict[str, Any]]:
    for key, value in told.items():
        yield {"key": key, "operator": "In", "values": [value]}


def ending_of(claim: NodeClaim) -> LateRefusal:
    """What its conditions say of one that goes and never was a node."""
    why = claim.unregistered if claim.unlaunched is None else claim.unlaunched
    return told_of(claim, "going", f"Karpenter deletes it before its node joined: {why}".rstrip(": "))


def told_of(claim: NodeClaim, what: str, said: str) -> LateRefusal:
    """What is said of a claim that was not launched, or goes."""
    name, message = claim.metadata.name, f"NodeClaim {claim.metadata.name}: {said}"[:240]
    reason = "other" if claim.unlaunched is None else _reason(said)
    return LateRefusal(identity=f"{name}/{what}", reason=reason, message=message, zone=claim.zone)


def shortage(told: ClaimEvent) -> LateRefusal:
    """Karpenter's Event of a claim that no machine was left for."""
    reason: Reason = "quota" if _reason(told.message) == "quota" else "no-capacity"
    identity = f"{told.involved_object.name}/{SHORT}"
    return LateRefusal(identity=identity, reason=reason, message=told.message[:240], at=told.at)


def _reason(why: str) -> Reason:
    """By a provider's words; a class that is not ready, or a right that is missing, is no want of machines."""
    if _QUOTA.search(why):
        return "quota"
    return "no-capacity" if _SHORTAGE.search(why) else "other"
