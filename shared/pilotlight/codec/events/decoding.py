"""The door for bodies: finds the events in a body, through all that is wrapped around them, and has each read."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice

import msgspec

from pilotlight.codec.events import aws_envelopes, pubsub, scheduler
from pilotlight.codec.events.envelope import (
    Delivery,
    Envelope,
    Ignored,
    Refused,
    from_cloudevent,
    join,
    parse,
    written,
)
from pilotlight.codec.events.readers import reader_of
from pilotlight.errors import BadEvent, TooMuch
from pilotlight.facts.messages import Message

MAX_WRAPPERS = 8
"""How many arrays, envelopes and lists may lie around one event."""

MAX_EVENTS = 500
"""How many events a body may hold."""

FIRST_YEAR, LAST_YEAR = 1970, 2200
"""A time outside of these is no time of a cloud's."""


def decode(body: bytes, headers: Mapping[str, str], *, cluster: str) -> list[Delivery | Refused]:
    """The events in a request body. ``cluster`` holds where an event names none.

    Reads CloudEvents in binary, structured and batch mode, the envelopes of Pub/Sub, SQS and SNS around any of them,
    and the plain JSON of the sources beside this file; arrays of any of these. Valid events that ask for nothing are
    ``Ignored``. One of several that is bad is ``Refused``; a body that is one event and bad raises ``BadEvent``, which
    names the path, and nothing else is raised.
    """
    head = {key.lower(): value for key, value in headers.items()}
    envelope = Envelope(data=None, cluster=cluster, id=head.get("x-goog-pubsub-message-id", ""))
    if "ce-specversion" in head:
        attributes = {key[3:]: value for key, value in head.items() if key.startswith("ce-")}
        return _within(from_cloudevent(envelope, attributes, parse(body) if body else None))
    if "x-cloudscheduler" in head:
        called = scheduler.called(envelope, head)
        return _within(called.within("", parse(body)) if body.strip() not in (b"", b"{}") else called)
    return _within(envelope.within("", parse(body)))


def _within(event: Envelope) -> list[Delivery | Refused]:
    """All that is in a body, read no further than the limit."""
    found = list(islice(_outcomes(event), MAX_EVENTS + 1))
    if len(found) > MAX_EVENTS:
        raise TooMuch(f"more than {MAX_EVENTS} events in one body; send them in parts")
    return found


def _outcomes(event: Envelope, depth: int = 0) -> Iterator[Delivery | Refused]:
    """What is in one event, through whatever is wrapped around it."""
    if depth > MAX_WRAPPERS:
        raise BadEvent("wrapped too deeply", event.path)
    several = _several(event)
    if several is not None:
        for one in several:
            yield from _one_of(one, depth + 1)
        return
    inside = _opened(event)
    yield from _outcomes(inside, depth + 1) if inside is not None else _delivered(event)


def _one_of(event: Envelope, depth: int) -> Iterator[Delivery | Refused]:
    """One of several: when it is bad, its neighbours are not."""
    try:
        yield from _outcomes(event, depth)
    except BadEvent as error:
        yield Refused(error=error, body=written(event))


def _several(event: Envelope) -> Iterator[Envelope] | None:
    """The events in an array, under whatever key their source puts it."""
    if event.type:
        return None
    match event.data:
        case list() as items:
            key = ""
        case {"kind": "List" | "EventList" | "PodList", "items": list() as items}:
            key = "items"
        case {"Records": list() as items}:
            key = "Records"
        case {"entries": list() as items}:
            key = "entries"
        case {"alerts": list() as items, "receiver": _}:
            key = "alerts"
        case {"DocumentIncarnation": _, "Events": [_, *_] as items}:
            key = "Events"
        case _:
            return None
    return (event.within(f"{key}[{i}]", item) for i, item in enumerate(items))


def _opened(event: Envelope) -> Envelope | None:
    """What is in a structured CloudEvent or in a messaging service's envelope, or None where there is none."""
    if event.type == pubsub.PUBLISHED:
        return pubsub.pushed(event.within("data", event.data))
    if event.type:
        return None
    match event.data:
        case {"specversion": _}:
            return _structured(event)
        case {"message": dict()} if pubsub.is_push(event):
            return pubsub.pushed(event)
        case {"context": {"eventType": pubsub.BACKGROUND}}:
            return pubsub.background(event)
        case {"body": _, "eventSource": "aws:sqs"}:
            return aws_envelopes.queued(event)
        case {"Sns": dict() as notice}:
            return event.within("Sns", {"Type": "Notification", **notice})
        case {"Type": "Notification", "Message": _}:
            return aws_envelopes.notified(event)
    return None


def _structured(event: Envelope) -> Envelope:
    attributes = {key: value for key, value in event.data.items() if key not in ("data", "data_base64")}
    if (encoded := event.data.get("data_base64")) is None:
        return from_cloudevent(event, attributes, event.data.get("data"))
    path = join(event.path, "data_base64")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise BadEvent("not base64", path) from None
    return from_cloudevent(event, attributes, parse(data, path))


def _delivered(event: Envelope) -> list[Delivery | Refused]:
    dryrun = event.attributes.get("dryrun") or (event.data.get("dryrun") if isinstance(event.data, dict) else None)
    reader = reader_of(event)
    try:
        found = reader(event)
    except OverflowError:
        raise BadEvent("a time that no calendar holds", event.path) from None
    for one in found if isinstance(found, list) else [found]:
        _check_times(event, one)
    file = reader.__module__.rpartition(".")[2]
    return [
        Delivery(
            message=_counted(event, one, file) if isinstance(one, Ignored) else one,
            id=event.id,
            dryrun=dryrun in (True, "true", "1"),
        )
        for one in (found if isinstance(found, list) else [found])
    ]


def _check_times(event: Envelope, message: Message | Ignored) -> None:
    """What is decided reckons with these times: they must leave it room on both sides."""
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if isinstance(value, datetime) and not FIRST_YEAR <= value.year <= LAST_YEAR:
            raise BadEvent(f"the year {value.year} is not from {FIRST_YEAR} to {LAST_YEAR}", join(event.path, name))


def _counted(event: Envelope, ignored: Ignored, file: str) -> Ignored:
    """An ignored event under what such events are counted by: its own source and type, or the file that reads it."""
    source, kind = event.attributes.get("source"), event.type
    match event.data:
        case {"source": str(), "detail-type": str(kind)}:
            source = event.data["source"]
        case {"kind": str(kind)} | {"eventType": str(kind)} if not event.type:
            pass
    return msgspec.structs.replace(ignored, source=str(source or file), type=kind)
