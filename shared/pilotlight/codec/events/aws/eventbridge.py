"""Amazon EventBridge: interruptions and states of EC2, Health, Auto Scaling, S3 and schedules, by ``detail-type``.

The instance is that of ``detail``: the ARN in ``resources`` comes in more than one form. An event may come twice, under
one id or two: a fact is known by its instance and kind.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from pilotlight.codec.events import storage
from pilotlight.codec.events.aws import autoscaling
from pilotlight.codec.events.envelope import Envelope, Found, Ignored, convert_shape, moment
from pilotlight.facts.messages import InterruptionNotice, Moment, Name, NoticeKind, Tick

NOTICE = timedelta(seconds=120)
"""From the event's time until the instance goes. For a reclaimed capacity reservation AWS promises the same."""

ENDS: Mapping[str, str] = {
    "stopping": "stop",
    "stopped": "stop",
    "shutting-down": "terminate",
    "terminated": "terminate",
}
"""The states in which an instance ends, and what becomes of it."""

CHANGES: Mapping[str, str] = {
    "RETIREMENT": "terminate",
    "TERMINATION": "terminate",
    "STOP": "stop",
    "REBOOT": "reboot",
    "POWER": "reboot",
    "NETWORK": "freeze",
}
"""What becomes of an instance, by a word of Health's event type code ("AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"). A
persistent one that is retired is stopped, and does not start by itself. Power maintenance ends in a reboot; that of the
network takes the connection for a moment (EC2's guide: scheduled events for your instances).
"""


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = msgspec.field(name="detail-type")
    id: str = ""
    time: Moment | None = None
    detail: Any = None


class _Instance(msgspec.Struct, frozen=True, kw_only=True):
    instance: Name = msgspec.field(name="instance-id")
    action: str = msgspec.field(name="instance-action", default="terminate")
    goes_at: str = msgspec.field(name="instance-termination-time", default="")


class _State(msgspec.Struct, frozen=True, kw_only=True):
    instance: Name = msgspec.field(name="instance-id")
    state: str


class _Entity(msgspec.Struct, frozen=True, kw_only=True):
    entityValue: Name


class _Health(msgspec.Struct, frozen=True, kw_only=True):
    service: str = ""
    eventTypeCode: str = ""
    eventTypeCategory: str = ""
    statusCode: str = ""
    startTime: str = ""
    affectedEntities: list[_Entity] = []


def read(event: Envelope) -> Found:
    """One event of the bus."""
    head = convert_shape(event.data, _Event, event.path)
    reader = _READERS.get(head.kind)
    if reader is None:
        return Ignored(reason=f"{head.kind:.80} asks for nothing here")
    inside = event.step_into("detail", head.detail)
    return reader(msgspec.structs.replace(inside, id=head.id or event.id, at=head.time or event.at))


def _spot(event: Envelope) -> InterruptionNotice:
    return _ordered(event, "spot-interruption")


def _reservation(event: Envelope) -> InterruptionNotice:
    return _ordered(event, "capacity-reservation")


def _ordered(event: Envelope, kind: NoticeKind) -> InterruptionNotice:
    about = convert_shape(event.data, _Instance, event.path)
    goes_at = moment(about.goes_at, event.step_into("instance-termination-time", None).path)
    deadline = goes_at or (event.at + NOTICE if event.at else None)
    return _notice(event, about.instance, kind, action=about.action, deadline=deadline)


def _rebalance(event: Envelope) -> InterruptionNotice:
    return _notice(event, convert_shape(event.data, _Instance, event.path).instance, "rebalance")


def _state(event: Envelope) -> InterruptionNotice | Ignored:
    about = convert_shape(event.data, _State, event.path)
    if about.state not in ENDS:
        return Ignored(reason=f"an instance that is {about.state:.80} asks for nothing here")
    return _notice(event, about.instance, "state-change", ENDS[about.state], action=ENDS[about.state])


def _health(event: Envelope) -> Found:
    """One notice of maintenance an instance; its time is written as in RFC 1123."""
    about = convert_shape(event.data, _Health, event.path)
    if (about.service, about.eventTypeCategory) != ("EC2", "scheduledChange") or about.statusCode == "closed":
        return Ignored(reason=f"Health of {about.service:.40}: {about.eventTypeCategory:.40} asks for nothing here")
    when = moment(about.startTime, event.step_into("startTime", None).path)
    fact = f"{when:%Y-%m-%dT%H:%MZ}" if when else ""
    words = about.eventTypeCode.split("_")
    action = next((becomes for word, becomes in CHANGES.items() if word in words), "unknown")
    return [
        _notice(event, entity.entityValue, "scheduled-change", fact, action=action, deadline=when)
        for entity in about.affectedEntities
    ] or Ignored(reason="a scheduled change of no instance")


def _notice(
    event: Envelope,
    instance: str,
    kind: NoticeKind,
    fact: str = "",
    *,
    action: str = "terminate",
    deadline: datetime | None = None,
) -> InterruptionNotice:
    """``fact`` tells two of a kind about one instance apart."""
    return InterruptionNotice(
        cluster=event.cluster,
        instance=instance,
        kind=kind,
        cloud="aws",
        action=action,
        identity="/".join(filter(None, (instance, kind, fact))),
        at=event.at,
        deadline=deadline,
    )


def _tick(event: Envelope) -> Tick:
    return Tick(cluster=event.cluster, identity=event.id, at=event.at)


def _anomaly(event: Envelope) -> Found:
    """Cost Anomaly Detection sends here what it sends to SNS."""
    from pilotlight.codec.events.aws import aws_costs

    return aws_costs.read_anomaly(event)


def _block(event: Envelope) -> Tick:
    """A Capacity Block begins, or ends soon: it names no instance, and what it says is read from the block itself."""
    return Tick(cluster=event.cluster, what="rescue", identity=event.id, at=event.at)


_READERS: Mapping[str, Callable[[Envelope], Found]] = {
    "EC2 Spot Instance Interruption Warning": _spot,
    "EC2 Capacity Reservation Instance Interruption Warning": _reservation,
    "EC2 Interruptible Capacity Reservation Instance Interruption Warning": _reservation,
    "Capacity Block Expiration Warning": _block,
    "Capacity Block Reservation Expiration Warning": _block,
    "EC2 Instance Rebalance Recommendation": _rebalance,
    "EC2 Instance State-change Notification": _state,
    "AWS Health Event": _health,
    "EC2 Instance-terminate Lifecycle Action": autoscaling.read_lifecycle,
    "EC2 Instance-launch Lifecycle Action": autoscaling.read_lifecycle,
    "EC2 Instance Launch Unsuccessful": autoscaling.read_failed_launch,
    "Object Created": storage.read_s3,
    "Anomaly Detected": _anomaly,
    "Scheduled Event": _tick,
}
