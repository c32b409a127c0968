"""The door for bodies: finds what kind of event a body holds, and hands it to that source's reader."""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pilotlight.codec.events import google, knative, kubernetes, ours
from pilotlight.codec.events.envelope import Delivery, Envelope, Ignored, from_cloudevent, parse
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import Message

MAX_WRAPPERS = 8
"""How many arrays, envelopes and lists may lie around one event."""


def decode(body: bytes, headers: Mapping[str, str], *, cluster: str) -> list[Delivery]:
    """The events in a request body. ``cluster`` holds where an event names none.

    Reads CloudEvents in binary, structured and batch mode, Pub/Sub push envelopes around any of them, and the
    plain JSON of the sources beside this file; arrays of any of these. Valid events that ask for nothing are
    ``Ignored``. Raises ``BadEvent``, which names the path, and nothing else.
    """
    head = {key.lower(): value for key, value in headers.items()}
    envelope = Envelope(data=None, cluster=cluster)
    if "ce-specversion" in head:
        attributes = {key[3:]: value for key, value in head.items() if key.startswith("ce-")}
        envelope = from_cloudevent(envelope, attributes, parse(body) if body else None)
        return [_deliver(event) for event in _unwrap(envelope)]
    return [_deliver(event) for event in _unwrap(envelope.within("", parse(body)))]


def _unwrap(event: Envelope, depth: int = 0) -> Iterator[Envelope]:
    """The single events in arrays, structured CloudEvents, Pub/Sub envelopes and Kubernetes lists."""
    if depth > MAX_WRAPPERS:
        raise BadEvent("wrapped too deeply", event.path)
    inner: Iterator[Envelope]
    match event.data:
        case list() as items if not event.type:
            inner = (event.within(f"[{i}]", item) for i, item in enumerate(items))
        case {"specversion": _} if not event.type:
            inner = iter([_structured(event)])
        case {"message": dict()} if google.is_push(event):
            inner = iter([google.pushed(event)])
        case {"kind": "List" | "EventList" | "PodList", "items": list() as items}:
            inner = (event.within(f"items[{i}]", item) for i, item in enumerate(items))
        case _:
            yield event
            return
    for one in inner:
        yield from _unwrap(one, depth + 1)


def _structured(event: Envelope) -> Envelope:
    attributes = {key: value for key, value in event.data.items() if key not in ("data", "data_base64")}
    if (encoded := event.data.get("data_base64")) is None:
        return from_cloudevent(event, attributes, event.data.get("data"))
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise BadEvent("not base64", event.within("data_base64", None).path) from None
    return from_cloudevent(event, attributes, parse(data, event.within("data_base64", None).path))


def _deliver(event: Envelope) -> Delivery:
    dryrun = event.attributes.get("dryrun") or (event.data.get("dryrun") if isinstance(event.data, dict) else None)
    message = _reader(event)(event)
    return Delivery(message=message, id=event.id, dryrun=dryrun in (True, "true", "1"))


def _reader(event: Envelope) -> Callable[[Envelope], Message | Ignored]:
    """Who reads it: by CloudEvent type where there is one, else by what only that source's JSON has."""
    if event.type:
        return ours.read if event.type in ours.TYPES else knative.read if knative.sends(event.type) else _unknown_type
    match event.data:
        case {"tick": _}:
            return google.read_tick
        case {"involvedObject": _} | {"kind": "Event"}:
            return kubernetes.read_event
        case {"kind": "Pod"}:
            return kubernetes.read_pod
        case {"logName": _} | {"jsonPayload": _} | {"textPayload": _}:
            return google.read_log_entry
        case None if event.attributes:
            return google.read_attributes
    return _unknown_shape


def _unknown_type(event: Envelope) -> Ignored:
    """Google's triggers deliver more than is asked of them. Any other type was sent here by mistake, and is kept."""
    if event.type.startswith(google.TYPES):
        return Ignored(reason=f"CloudEvent type {event.type} asks for nothing here")
    raise BadEvent(f"no function takes a CloudEvent of type {event.type!r}; mend the sender's filter", "type")


def _unknown_shape(event: Envelope) -> Message | Ignored:
    kind: Any = event.data.get("kind") if isinstance(event.data, dict) else None
    if isinstance(kind, str) and "apiVersion" in event.data:
        return Ignored(reason=f"a Kubernetes {kind} asks for nothing here")
    raise BadEvent(
        "no known source sends this; expected a CloudEvent, a Pub/Sub push, a Kubernetes Event or Pod, "
        "a Cloud Logging entry or a tick",
        event.path,
    )
