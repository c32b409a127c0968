"""Cloud Scheduler: it sends exactly what it was told to, as ``{"tick": "reconcile"}`` or ``{"tick": "billing"}``.

Through Pub/Sub neither the job's name nor its time is in the message; over HTTP both are in headers. The same body
does for any other scheduler.
"""

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from pilotlight.codec.events.envelope import Envelope, Ignored, convert_shape
from pilotlight.facts.messages import Moment, Tick

PURPOSES: tuple[str, ...] = get_args(Tick.__annotations__["what"])
"""What a tick may be for."""

TIME = "x-cloudscheduler-scheduletime"


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    time: Moment = msgspec.field(name=TIME)


def ticks(attributes: Mapping[str, Any]) -> bool:
    """True where a message's attributes alone make it a tick."""
    return "tick" in attributes or attributes.get("kind") == "tick"


def scheduled_call(event: Envelope, head: Mapping[str, str]) -> Envelope:
    """A call of an HTTP target: known by its job and the time it was due, which its headers say."""
    job = head.get("x-cloudscheduler-jobname", "")
    at = convert_shape(dict(head), _Head).time if TIME in head else None
    return msgspec.structs.replace(
        event, id=f"{job}/{at.isoformat()}" if at else event.id, at=at, attributes={"tick": "reconcile"}
    )


def read(event: Envelope) -> Tick | Ignored:
    """A body that says what the tick is for."""
    what = event.data["tick"]
    if what not in PURPOSES:
        return Ignored(reason=f"tick {what!r:.80} asks for nothing here")
    return _tick(event, what)


def read_attributes(event: Envelope) -> Tick:
    """An attribute ``tick`` says what it is for; ``kind: tick`` alone means a look at the cluster."""
    what = event.attributes.get("tick")
    return _tick(event, what if what in PURPOSES else "reconcile")


def _tick(event: Envelope, what: Any) -> Tick:
    return Tick(cluster=event.cluster, what=what, identity=event.id, at=event.at)
