"""Google Cloud: the Pub/Sub push envelope, Cloud Logging entries of GKE events, and Cloud Scheduler ticks.

The envelope is the same over plain push and inside a ``messagePublished`` CloudEvent; ``data`` may be absent.
"""

import base64
import binascii
from typing import Any

import msgspec

from pilotlight.codec.events import kubernetes
from pilotlight.codec.events.envelope import Envelope, Ignored, parse, shaped
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import Moment, PodPending, Tick

TYPES = "google.cloud."
"""How the types of Google's CloudEvents begin."""

PUBLISHED = "google.cloud.pubsub.topic.v1.messagePublished"


class _Pushed(msgspec.Struct, frozen=True, kw_only=True):
    data: str | None = None
    attributes: dict[str, str] | None = None
    messageId: str = ""
    message_id: str = ""
    publishTime: Moment | None = None


class _Labels(msgspec.Struct, frozen=True, kw_only=True):
    cluster_name: str = ""


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    labels: _Labels = _Labels()


class _LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    jsonPayload: dict[str, Any] | None = None
    insertId: str = ""
    timestamp: Moment | None = None
    resource: _Resource = _Resource()


def is_push(envelope: Envelope) -> bool:
    """Whether the body is a Pub/Sub push: its message holds ``data``, ``attributes`` or an id."""
    known = {"data", "attributes", "messageId", "message_id"}
    return envelope.type in ("", PUBLISHED) and bool(known & envelope.data["message"].keys())


def pushed(envelope: Envelope) -> Envelope:
    """What a push carries. The message's id stands in where the event inside has none."""
    inside = envelope.within("message", envelope.data["message"])
    message = shaped(inside.data, _Pushed, inside.path)
    data_path = inside.within("data", None).path
    return msgspec.structs.replace(
        envelope,
        data=parse(_decoded(message.data, data_path), data_path) if message.data else None,
        type="",
        id=message.messageId or message.message_id or envelope.id,
        at=message.publishTime or envelope.at,
        attributes=message.attributes or {"messageId": message.messageId},
        path=data_path,
    )


def _decoded(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadEvent("not base64", path) from None


def read_attributes(envelope: Envelope) -> Tick | Ignored:
    """A message of attributes alone: a tick when they say so."""
    if "tick" in envelope.attributes or envelope.attributes.get("kind") == "tick":
        return _tick(envelope)
    return Ignored(reason="a Pub/Sub message without data")


def read_tick(envelope: Envelope) -> Tick | Ignored:
    """Cloud Scheduler sends exactly what it was told to: ``{"tick": "reconcile"}``."""
    if envelope.data["tick"] != "reconcile":
        return Ignored(reason=f"tick {envelope.data['tick']!r:.80} asks for nothing here")
    return _tick(envelope)


def _tick(envelope: Envelope) -> Tick:
    return Tick(cluster=envelope.cluster, identity=envelope.id, at=envelope.at)


def read_log_entry(envelope: Envelope) -> PodPending | Ignored:
    """A GKE Kubernetes event in Cloud Logging. The exporter's start-up line is text: no event is in it."""
    entry = shaped(envelope.data, _LogEntry, envelope.path)
    if entry.jsonPayload is None or "involvedObject" not in entry.jsonPayload:
        return Ignored(reason="a log entry without a Kubernetes event")
    event = msgspec.structs.replace(
        envelope.within("jsonPayload", entry.jsonPayload),
        cluster=entry.resource.labels.cluster_name or envelope.cluster,
        id=entry.insertId or envelope.id,
        at=entry.timestamp or envelope.at,
    )
    return kubernetes.read_event(event)
