"""What travels: the messages functions receive and publish. One type a message; ``TYPES`` names each.

Wire form: the ``data`` of a CloudEvent whose ``type`` is the key in ``TYPES``. Schemas: ``events/schemas/``.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone, as RFC 3339 text."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
"""The name of a Kubernetes object."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Unknown fields of a message are ignored, so that senders can be newer than receivers."""


class PodPending(_Message, frozen=True, kw_only=True):
    """A GPU pod could not be scheduled. A hint: what is true is read from the cluster.

    ``identity`` tells one delivery's fact from another (object uid + resourceVersion where ids are random).
    """

    cluster: str
    namespace: Name
    name: Name
    uid: str = ""
    identity: str = ""
    at: Moment | None = None
    pod: dict[str, object] | None = None


class Tick(_Message, frozen=True, kw_only=True):
    """A schedule fired for a cluster."""

    cluster: str
    identity: str = ""
    at: Moment | None = None


class Alert(_Message, frozen=True, kw_only=True):
    """Something people should know. ``fingerprint`` is equal for what should be told once.

    ``what``, ``why``, ``next``, ``how`` are sentences; ``usd_per_hour`` is decimal text.
    """

    cluster: str
    kind: str
    severity: Literal["info", "warning", "critical"]
    fingerprint: str
    what: str
    why: str
    next: str = ""
    how: str = ""
    usd_per_hour: str = ""
    team: str = ""
    decision: str = ""
    at: Moment | None = None


class CapacityChanged(_Message, frozen=True, kw_only=True):
    """Pilotlight asked the cloud for nodes, or gave one back."""

    cluster: str
    decision: str
    pool: str
    change: Literal["grow", "release"]
    nodes: int
    usd_per_hour: str
    why: str
    at: Moment


class DeadLetter(_Message, frozen=True, kw_only=True):
    """An event that was refused, with the reason. ``body`` is whole, up to the size that is parsed at all."""

    reason: str
    path: str
    function: str
    body: str
    headers: dict[str, str] = {}
    at: Moment


Message = PodPending | Tick | Alert | CapacityChanged | DeadLetter

TYPES: dict[str, type[msgspec.Struct]] = {
    "dev.pilotlight.pod.pending.v1": PodPending,
    "dev.pilotlight.tick.v1": Tick,
    "dev.pilotlight.alert.v1": Alert,
    "dev.pilotlight.capacity.changed.v1": CapacityChanged,
    "dev.pilotlight.dead-letter.v1": DeadLetter,
}


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A message on its way out. ``id`` is stable over re-sends; ``key`` orders messages of one pool."""

    id: str
    topic: Literal["alerts", "capacity", "dead-letter"]
    type: str
    key: str
    data: msgspec.Raw
