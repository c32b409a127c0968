"""Messages that functions receive and publish. One type a message; ``TYPES`` names each.

Wire form: the ``data`` of a CloudEvent whose ``type`` is the key in ``TYPES``. Schemas: ``events/schemas/``.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

STALE_S = 600.0
"""Seconds after which an event is only a hint that a cluster should be looked at."""

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


class QuotaReserved(_Message, frozen=True, kw_only=True):
    """Kueue has reserved quota for a Workload, whose admission checks wait. A hint, as ``PodPending`` is."""

    cluster: str
    namespace: Name
    name: Name
    uid: str = ""
    identity: str = ""
    at: Moment | None = None


class NodeJoined(_Message, frozen=True, kw_only=True):
    """A node has registered, or become Ready. A hint, as ``PodPending`` is: its home is given when it is seen."""

    cluster: str
    name: Name
    uid: str = ""
    identity: str = ""
    at: Moment | None = None


class Tick(_Message, frozen=True, kw_only=True):
    """A schedule fired for a cluster; ``what`` it is for."""

    cluster: str
    what: Literal["reconcile", "billing", "bills", "rescue", "alerts"] = "reconcile"
    identity: str = ""
    at: Moment | None = None


NoticeKind = Literal[
    "spot-interruption",
    "rebalance",
    "capacity-reservation",
    "scheduled-change",
    "lifecycle",
    "state-change",
    "preempted",
]
"""``spot-interruption`` and ``capacity-reservation`` are orders with a deadline; ``rebalance`` is a probability;
``scheduled-change`` is maintenance; ``lifecycle`` is a group that terminates an instance and waits for an answer;
``state-change`` and ``preempted`` come after the fact."""


class InterruptionNotice(_Message, frozen=True, kw_only=True):
    """A cloud takes an instance back, may do so, or has done so.

    ``instance`` is the cloud's id or name, ``cloud`` whose word it is ("node" for a mark on the node). ``deadline`` is
    when it goes, None where the cloud does not say. ``action`` is what becomes of it ("terminate", "stop",
    "hibernate"). ``group``, ``hook`` and ``token`` are an Auto Scaling group's: what it wants back with the answer it
    waits for.
    """

    cluster: str  # Name of the cluster.
    instance: Name  # The cloud's id or name of it.
    kind: NoticeKind  # An order, a probability, or a report.
    cloud: Literal["aws", "gcp", "azure", "world", "node"]  # Whose word it is; "node" for a mark on the node.
    action: str = "terminate"  # What becomes of it: "terminate", "stop" or "hibernate".
    zone: str = ""  # Its zone, where the cloud says it.
    group: str = ""  # Auto Scaling group that waits for an answer.
    hook: str = ""  # The group's lifecycle hook.
    token: str = ""  # The group's token, for the answer.
    identity: str = ""  # Tells one fact from another.
    at: Moment | None = None  # When it was said.
    deadline: Moment | None = None  # When it goes; None where the cloud does not say.


class CapacityFailed(_Message, frozen=True, kw_only=True):
    """A cloud could not launch what a pool asked for. ``group`` is the node group as the cloud names it."""

    cluster: str
    group: Name
    reason: Literal["no-capacity", "quota", "other"]
    message: str
    zone: str = ""
    identity: str = ""
    at: Moment | None = None


class BudgetNotice(_Message, frozen=True, kw_only=True):
    """A cloud's own budget says how much is spent. It comes hours late and again and again: never a cap.

    ``threshold`` is a share of the budget (1.0 is all of it), None where none is crossed yet; amounts are decimal text.
    With ``anomaly``, what the cloud says is behind it, it is unusual spend that the cloud found: ``budget`` is its id,
    ``limit`` what was expected, ``link`` the cloud's page of it.
    """

    cluster: str  # Name of the cluster.
    budget: Name  # The cloud's name of its budget, or the id of unusual spend.
    cost: str  # Spent so far, as decimal text.
    limit: str  # The budget, or what was expected; decimal text.
    currency: str  # Code of both amounts.
    since: Moment  # Begin of the time that is counted.
    threshold: float | None = None  # Share that is crossed, 1.0 is all; None for none yet.
    forecast: bool = False  # It is foretold to be crossed, and not crossed yet.
    display: str = ""  # A name for people, where there is one.
    anomaly: str = ""  # What the cloud says is behind unusual spend; empty for a budget.
    link: str = ""  # The cloud's page of it.
    identity: str = ""  # Tells one fact from another.
    at: Moment | None = None  # When it was said.


class BillExported(_Message, frozen=True, kw_only=True):
    """A file of a billing export was written: ``uri`` is ``s3://``, ``gs://`` or a path."""

    cluster: str
    uri: Name
    identity: str = ""
    at: Moment | None = None


class Alert(_Message, frozen=True, kw_only=True):
    """Something people should know. ``fingerprint`` is equal for what should be told once.

    ``what``, ``why``, ``next``, ``how`` are sentences; ``usd_per_hour`` and ``usd`` (in all) are decimal text.
    ``subject`` is what it is about: a pod, a node, a pool. ``resolved``: what was told under this fingerprint is over.
    ``links`` are web addresses to look further at, by name.
    """

    cluster: str  # Name of the cluster.
    kind: str  # Of what sort, such as "cloud-budget"; channels choose by it.
    severity: Literal["info", "warning", "critical"]  # How urgent it is.
    fingerprint: str  # Equal for what should be told once.
    what: str  # A sentence: what happened.
    why: str  # A sentence: the reason, with its figures.
    next: str = ""  # A sentence: what Pilotlight does now.
    how: str = ""  # A sentence or a command: what people can do.
    usd_per_hour: str = ""  # Dollars an hour, as decimal text.
    usd: str = ""  # Dollars in all, as decimal text.
    resolved: bool = False  # What was told under this fingerprint is over.
    subject: str = ""  # A pod, a node or a pool that it is about.
    team: str = ""  # The team that it is about.
    decision: str = ""  # Id of the decision that it came of.
    at: Moment | None = None  # When it was raised.
    links: dict[str, str] = {}  # Web addresses to look further at, by name.


class CapacityChanged(_Message, frozen=True, kw_only=True):
    """Pilotlight asked the cloud for nodes, or gave one back. ``usd_per_hour`` is empty where no price is known."""

    cluster: str
    decision: str
    pool: str
    change: Literal["grow", "release"]
    nodes: int
    usd_per_hour: str
    why: str
    at: Moment


class DeadLetter(_Message, frozen=True, kw_only=True):
    """An event that was refused, with the reason.

    ``body`` is whole, up to the size that is parsed at all, without the secrets that can be told; of too much it is the
    beginning. ``size`` and ``sha256`` are of what came in. ``count`` is how often it was refused so.
    """

    reason: str
    path: str
    function: str
    body: str
    headers: dict[str, str] = {}
    at: Moment
    size: int = 0
    sha256: str = ""
    count: int = 1


Message = (
    PodPending
    | QuotaReserved
    | NodeJoined
    | Tick
    | InterruptionNotice
    | CapacityFailed
    | BudgetNotice
    | BillExported
    | Alert
    | CapacityChanged
    | DeadLetter
)

TYPES: dict[str, type[msgspec.Struct]] = {
    "dev.pilotlight.pod.pending.v1": PodPending,
    "dev.pilotlight.quota.reserved.v1": QuotaReserved,
    "dev.pilotlight.node.joined.v1": NodeJoined,
    "dev.pilotlight.tick.v1": Tick,
    "dev.pilotlight.interruption.notice.v1": InterruptionNotice,
    "dev.pilotlight.capacity.failed.v1": CapacityFailed,
    "dev.pilotlight.budget.notice.v1": BudgetNotice,
    "dev.pilotlight.bill.exported.v1": BillExported,
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
