"""Karpenter's NodePools and NodeClaims, with the fields that matter for a limit of GPUs.

Sources: the NodePool and NodeClaim CRDs of karpenter.sh/v1; Karpenter's documentation, "Disruption": a budget without
reasons is for all of them, the most restrictive one holds, a percentage is rounded up, and expiry asks no budget.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from pilotlight.codec.kubernetes.bounds import DEVICES, Bound, beyond_bound
from pilotlight.codec.kubernetes.typed_objects import Condition, Metadata, Wire
from pilotlight.facts.labels import CAPACITY_TYPE, INSTANCE_TYPE, KARPENTER_NODE_POOL, ZONE
from pilotlight.facts.money.gates import LIMITED, GateClaim, GateState, Surge
from pilotlight.units import quantity

BEFORE, WROTE = "pilotlight.dev/gpu-limit-before", "pilotlight.dev/gpu-limit"
"""Annotations of a NodePool: its limit from before ours ("" for none), and ours as it was written last."""
HANDED_BACK = "pilotlight.dev/gpu-limit-handed-back"
"""Annotation of a NodePool whose limit was given back to its owner, and since when: none is set while it is there."""
MANAGER = "pilotlight-gate"
"""The field manager that the limit is written as."""
UNREADY = ("NodeClassReady", "ValidationSucceeded")
"""Conditions of a NodePool without which nothing is launched."""
MOST_LIMIT = 1 << 31
"""GPUs; a limit that is higher is as good as this."""
_EVER: timedelta = timedelta(days=3660)
_STEPS = {"s": 1, "m": 60, "h": 3600}
_SPAN = re.compile(r"(\d{1,9})([smh])")
_NUMBER = re.compile(r"(\d{1,9})(%?)")


class _Managed(Wire, frozen=True):
    manager: str = ""
    fields_v1: Any = msgspec.field(default=None, name="fieldsV1")


class PoolMetadata(Metadata, frozen=True):
    """With its version, and who manages which fields."""

    resource_version: str = ""
    managed_fields: tuple[_Managed, ...] = ()


class _Requirement(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeClassRef(Wire, frozen=True):
    """What a provider makes its machines by."""

    group: str = ""
    kind: str = ""
    name: str = ""


class _ClaimSpec(Wire, frozen=True):
    node_class_ref: NodeClassRef = NodeClassRef()
    requirements: tuple[_Requirement, ...] = ()
    taints: tuple[dict[str, Any], ...] = ()
    startup_taints: tuple[dict[str, Any], ...] = ()


class _Marks(Wire, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Template(Wire, frozen=True):
    metadata: _Marks = _Marks()
    spec: _ClaimSpec = _ClaimSpec()


class _Budget(Wire, frozen=True):
    nodes: str = "10%"
    reasons: tuple[str, ...] | None = None
    schedule: str = ""


class _Disruption(Wire, frozen=True):
    budgets: tuple[_Budget, ...] = (_Budget(),)
    consolidation_policy: str = ""
    consolidate_after: str = ""


class _PoolSpec(Wire, frozen=True):
    template: _Template = _Template()
    limits: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    disruption: _Disruption = _Disruption()
    replicas: int | None = None
    weight: int | None = None


class _PoolStatus(Wire, frozen=True):
    conditions: tuple[Condition, ...] = ()


class GatedNodePool(Wire, frozen=True):
    """A NodePool."""

    metadata: PoolMetadata
    spec: _PoolSpec = _PoolSpec()
    status: _PoolStatus = _PoolStatus()

    @property
    def unready(self) -> str:
        """Why Karpenter makes nothing by its template, in its own words; empty where it may."""
        bad = (one for one in self.status.conditions if one.type in UNREADY and one.status == "False")
        return next((f"{one.type} is False ({one.reason}: {one.message})" for one in bad), "")


class _OwnSpec(Wire, frozen=True):
    expire_after: str = ""
    requirements: tuple[_Requirement, ...] = ()


class _ClaimStatus(Wire, frozen=True):
    capacity: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    node_name: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")
    conditions: tuple[Condition, ...] = ()


class NodeClaim(Wire, frozen=True):
    """A NodeClaim. ``unread`` is why nothing but its name and labels could be read, or empty."""

    metadata: PoolMetadata
    spec: _OwnSpec = _OwnSpec()
    status: _ClaimStatus = _ClaimStatus()
    unread: str = ""

    @classmethod
    def husk(cls, name: str, uid: str, labels: dict[str, str], why: str) -> "NodeClaim":
        """One of which no more can be read: it may be a machine all the same, of the pool that its labels name."""
        return cls(metadata=PoolMetadata(name=name, uid=uid, labels=labels), unread=why)

    @property
    def nodepool(self) -> str:
        """The NodePool that made it."""
        return self.metadata.labels.get(KARPENTER_NODE_POOL, "")

    @property
    def billed_from(self) -> datetime:
        """When its provider launched it, for one that waits costs nothing; when it was made, where nothing says so."""
        told = (one for one in self.status.conditions if one.type == "Launched" and one.status == "True")
        made = self.metadata.created_at
        return max([made, *(one.last_transition_time or made for one in told)])

    @property
    def unlaunched(self) -> str | None:
        """Why its provider has not launched it, in its own words; None where it has, or may have."""
        if self.status.provider_id or self.status.node_name or self.unread:
            return None
        return self._said("Launched")

    @property
    def unregistered(self) -> str:
        """Why Karpenter has no node for it, in its own words."""
        return self._said("Registered")

    @property
    def costs(self) -> bool:
        """True where its provider launched a machine, and was not told to end it."""
        ends = any(one.type == "InstanceTerminating" and one.status == "True" for one in self.status.conditions)
        return bool(self.status.provider_id) and not ends

    @property
    def zone(self) -> str:
        """Where it was asked for, or came; empty where nothing says so."""
        named = _named(self.spec.requirements, ZONE)
        return named[0] if len(named) == 1 else self.metadata.labels.get(ZONE, "")

    def _said(self, kind: str) -> str:
        told = next((one for one in self.status.conditions if one.type == kind), None)
        return f"{told.reason}: {told.message}".strip(": ") if told is not None else ""


def gate_state(pool: GatedNodePool, claims: Iterable[NodeClaim]) -> GateState:
    """A NodePool as facts, with those of its claims; what cannot be read of it is told in ``unread``."""
    meta, spec = pool.metadata, pool.spec
    own = made_by(meta.name, claims)
    notes, now = meta.annotations, spec.limits.get(LIMITED)
    given = notes.get(HANDED_BACK, "")[:20]
    before, wrote = notes.get(BEFORE), _NUMBER.fullmatch(notes.get(WROTE, ""))
    ours = int(wrote[1]) if wrote and not wrote[2] else None
    try:
        limit, made = _whole(now, "spec.limits"), tuple(map(_claim, own))
        if before is not None and ours is not None and limit != ours:
            before = "" if now is None else str(now)  # Its owner's last word: none of ours goes above it.
        cap = limit if before is None else _whole(before or None, BEFORE)
    except ValueError as no:
        left = unread_state(meta.name, str(no), own)
        return msgspec.structs.replace(left, version=meta.resource_version, before=before, given=given)
    return GateState(
        nodepool=meta.name,
        version=meta.resource_version,
        limit=limit,
        written="" if now is None else str(now),
        cap=cap,
        before=before,
        given=given,
        wrote=ours,
        managers=tuple(m.manager for m in meta.managed_fields if m.manager != MANAGER and _limits(m.fields_v1)),
        types=_named(spec.template.spec.requirements, INSTANCE_TYPE),
        capacity_types=_named(spec.template.spec.requirements, CAPACITY_TYPE),
        static=spec.replicas is not None,
        weight=max(1, spec.weight or 1),
        surges=surges(spec.disruption),
        claims=made,
    )


def made_by(pool: str, claims: Iterable[NodeClaim]) -> list[NodeClaim]:
    """The claims of a NodePool, by its name; those that no NodePool has are by an empty one."""
    return [claim for claim in claims if claim.nodepool == pool]


def live_ones(claims: Iterable[NodeClaim]) -> list[NodeClaim]:
    """Those that are not being deleted."""
    return [claim for claim in claims if claim.metadata.deletion_timestamp is None]


def why_unread(claims: Iterable[NodeClaim]) -> str:
    """Why claims are not all read, by the first that is not; empty where they are."""
    odd = next((claim for claim in claims if claim.unread), None)
    return f"NodeClaim {odd.metadata.name} cannot be read: {odd.unread}; mend or delete it" if odd is not None else ""


def unread_state(pool: str, why: str, claims: Iterable[NodeClaim]) -> GateState:
    """A NodePool that is not there, or cannot be read. Its machines cost all the same, so they are counted."""
    there = (GateClaim(name=one.metadata.name, node=one.status.node_name) for one in made_by(pool, claims))
    return GateState(nodepool=pool, unread=why, claims=tuple(there))


def _claim(claim: NodeClaim) -> GateClaim:
    meta, held = claim.metadata, claim.status.capacity
    return GateClaim(
        name=meta.name,
        gpus=_whole(held.get(LIMITED, 0), f"NodeClaim {meta.name}: status.capacity", DEVICES) if held else None,
        type=meta.labels.get(INSTANCE_TYPE, ""),
        node=claim.status.node_name,
        going=meta.deletion_timestamp is not None,
        ends_at=_ends(meta.creation_timestamp, claim.spec.expire_after),
    )


def _whole(amount: object, where: str, bound: Bound | None = None) -> int | None:
    """Whole GPUs; None where none are named. Raises ``ValueError``."""
    if amount is None:
        return None
    found = quantity(amount)
    if bound is not None and not bound.takes(found):
        raise ValueError(beyond_bound(where, found, bound))
    return int(min(found, Decimal(MOST_LIMIT)))


def _ends(created: datetime | None, after: str) -> datetime | None:
    """When a claim expires; None where it never does, or in no time that anybody plans by."""
    spans = _SPAN.findall(after)
    if created is None or not spans:
        return None
    whole = timedelta(seconds=sum(int(count) * _STEPS[unit] for count, unit in spans[:8]))
    return created + whole if whole < _EVER else None


def _limits(fields: object) -> bool:
    """True where somebody's managed fields have the limit of GPUs."""
    for part in ("f:spec", "f:limits", f"f:{LIMITED}"):
        fields = fields.get(part) if isinstance(fields, Mapping) else None
    return fields is not None


def _named(requirements: Iterable[_Requirement], key: str) -> tuple[str, ...]:
    """The values that all requirements of a key let in, of those that list some."""
    lists = [set(each.values) for each in requirements if each.key == key and each.operator == "In"]
    return tuple(sorted(set.intersection(*lists))) if lists else ()


def surges(disruption: _Disruption) -> tuple[Surge, ...]:
    """What may be replaced at once by drift, and by consolidation. Schedules only ever lower that."""
    moves = disruption.consolidation_policy != "WhenEmpty" and disruption.consolidate_after != "Never"
    return tuple(_allowed(disruption, reason) for reason in ("Drifted", "Underutilized")[: 1 + moves])


def _allowed(disruption: _Disruption, reason: str) -> Surge:
    mine = [b.nodes for b in disruption.budgets if not b.schedule and (not b.reasons or reason in b.reasons)]
    found = [m for m in map(_NUMBER.fullmatch, mine) if m]
    return Surge(
        most=min((int(m[1]) for m in found if not m[2]), default=MOST_LIMIT),
        percent=min((int(m[1]) for m in found if m[2]), default=100),
    )
