"""Evidence that cluster-autoscaler is alive: the status it writes at every loop, and its Lease."""

import re
from datetime import UTC, datetime

import msgspec

from pilotlight.codec.kubernetes.typed_objects import Wire
from pilotlight.facts.capacity import Scaler
from pilotlight.facts.nodes.instance_groups import autoscaled_groups

NAME = "cluster-autoscaler"
AUTOSCALER_NAMESPACE = "kube-system"
AUTOSCALER_STATUS = "cluster-autoscaler-status"
AUTOSCALER_LEASE = "cluster-autoscaler"
SCHEDULER_LEASE = "kube-scheduler"
UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"
"""Annotation with the time of its last loop, as Go writes it; its older words and its YAML begin with the same."""
_MOMENT = r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)"


class _Metadata(Wire, frozen=True):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class StatusMap(Wire, frozen=True):
    """Its ConfigMap."""

    metadata: _Metadata = _Metadata()
    data: dict[str, str] = msgspec.field(default_factory=dict)


class _LeaseSpec(Wire, frozen=True):
    renew_time: str = ""
    holder_identity: str = ""


class LeaseOf(Wire, frozen=True):
    """Its Lease, or another component's."""

    spec: _LeaseSpec = _LeaseSpec()

    @property
    def renewed_at(self) -> datetime | None:
        """When its holder last renewed it; None where nobody holds it."""
        return _moment(self.spec.renew_time) if self.spec.holder_identity else None


def scaler_of_status(found: StatusMap) -> Scaler | None:
    """Autoscaler that wrote the status, and its groups; None where no time is in it."""
    status = found.data.get("status", "")
    at = _moment(found.metadata.annotations.get(UPDATED, "") or status)
    return Scaler(name=NAME, seen_at=at, groups=tuple(sorted(autoscaled_groups(status)))) if at else None


def scaler_of_lease(found: LeaseOf) -> Scaler | None:
    """Autoscaler that holds the lease. It says nothing of groups."""
    at = found.renewed_at
    return Scaler(name=NAME, seen_at=at) if at else None


def _moment(text: str) -> datetime | None:
    found = re.search(_MOMENT, text)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}").replace(tzinfo=UTC)
    except ValueError:
        return None
