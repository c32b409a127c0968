"""Google Pub/Sub: the push envelope, the same in a ``messagePublished`` CloudEvent, and the background event of old.

Which of ``messageId`` and ``message_id`` is there differs; ``data`` may be absent, or words for people.
"""

import base64
import binascii
from typing import Any

import msgspec

from pilotlight.codec.events import scheduler
from pilotlight.codec.events.envelope import Envelope, Found, Ignored, convert_shape, parse_content
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import Moment

PUBLISHED = "google.cloud.pubsub.topic.v1.messagePublished"
BACKGROUND = "google.pubsub.topic.publish"


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    data: str | None = None
    attributes: dict[str, str] | None = None
    messageId: str = ""
    message_id: str = ""
    publishTime: Moment | None = None


class _Context(msgspec.Struct, frozen=True, kw_only=True):
    eventId: str
    timestamp: Moment | None = None


def is_push(event: Envelope) -> bool:
    """True where the body is a push: its message holds ``data``, ``attributes`` or an id."""
    known = {"data", "attributes", "messageId", "message_id"}
    return not event.type and bool(known & event.data["message"].keys())


def open_push(event: Envelope) -> Envelope:
    """Event of a push. The message's id stands in where the event inside has none."""
    message: Any = event.data.get("message") if isinstance(event.data, dict) else None
    return _opened(event.step_into("message", message))


def background(event: Envelope) -> Envelope:
    """Event of a background event: ``context`` beside the message itself, as ``data``."""
    context = convert_shape(event.data["context"], _Context, event.step_into("context", None).path)
    about = msgspec.structs.replace(event, id=context.eventId, at=context.timestamp)
    return _opened(about.step_into("data", event.data.get("data")))


def _opened(event: Envelope) -> Envelope:
    message = convert_shape(event.data, _Message, event.path)
    inside = event.step_into("data", None)
    return msgspec.structs.replace(
        inside,
        data=parse_content(_decoded(message.data, inside.path), inside.path) if message.data else None,
        type="",
        id=message.messageId or message.message_id or event.id,
        at=message.publishTime or event.at,
        attributes=message.attributes or {"messageId": message.messageId},
    )


def _decoded(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadEvent("not base64", path) from None


def read_attributes(event: Envelope) -> Found:
    """A message whose attributes say it all: a tick, or an object that was written. Its data may be words."""
    if scheduler.ticks(event.attributes):
        return scheduler.read_attributes(event)
    from pilotlight.codec.events import storage

    if storage.notifies(event.attributes):
        return storage.read_attributes(event)
    about = str(event.attributes.get("type_url", "")).rpartition(".")[2]
    return Ignored(reason=f"{about} asks for nothing here" if about else "a Pub/Sub message without an event in it")
