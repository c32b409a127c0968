"""Cloud Scheduler: it sends exactly what it was told to, ``{"tick": "reconcile"}`` or ``{"tick": "billing"}``.

Through Pub/Sub neither the job's name nor its time is in the message; over HTTP both are in headers. The same body
does for any other scheduler.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pilotlight.codec.events.envelope import Envelope, Ignored, shaped
from pilotlight.facts.messages import Moment, Tick

TIME = "x-cloudscheduler-scheduletime"


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    time: Moment = msgspec.field(name=TIME)


def ticks(attributes: Mapping[str, Any]) -> bool:
    """Whether a message's attributes alone make it a tick."""
    return "tick" in attributes or attributes.get("kind") == "tick"


def called(event: Envelope, head: Mapping[str, str]) -> Envelope:
    """A call of an HTTP target: known by its job and the time it was due, which its headers say."""
    job = head.get("x-cloudscheduler-jobname", "")
    at = shaped(dict(head), _Head).time if TIME in head else None
    return msgspec.structs.replace(
        event, id=f"{job}/{at.isoformat()}" if at else event.id, at=at, attributes={"tick": "reconcile"}
    )


def read(event: Envelope) -> Tick | Ignored:
    """A body that says what the tick is for."""
    match event.data["tick"]:
        case "reconcile":
            return _tick(event, "reconcile")
        case "billing":
            return _tick(event, "billing")
    return Ignored(reason=f"tick {event.data['tick']!r:.80} asks for nothing here")


def read_attributes(event: Envelope) -> Tick:
    """An attribute ``tick`` says what it is for; ``kind: tick`` alone means a look at the cluster."""
    return _tick(event, "billing" if event.attributes.get("tick") == "billing" else "reconcile")


def _tick(event: Envelope, what: Literal["reconcile", "billing"]) -> Tick:
    return Tick(cluster=event.cluster, what=what, identity=event.id, at=event.at)
