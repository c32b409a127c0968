"""Envelopes of events: JSON, CloudEvents and typed shapes, read so that only ``BadEvent`` can come out."""

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from cloudevents.exceptions import GenericException
from cloudevents.http import CloudEvent

from pilotlight import typed_json
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import Message, Moment

T = TypeVar("T")


class Ignored(msgspec.Struct, frozen=True, kw_only=True):
    """A valid event that asks for nothing: it is acknowledged, and counted by its ``source`` and ``type``."""

    reason: str
    source: str = ""
    type: str = ""


Found = Message | Ignored | list[Message | Ignored]
"""What a source's reader makes of one event: some say several things at once."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One event as it came in: what it says, the id it was delivered under, and whether it only asks."""

    message: Message | Ignored
    id: str = ""
    dryrun: bool = False


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """One of several events in a body, that cannot be read: why, and the event itself. Its neighbours can be."""

    error: BadEvent
    body: bytes


class Text(msgspec.Struct, frozen=True):
    """Content of an envelope that is no JSON object or array: words for people, or bytes of somebody else's."""

    begins: str


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """An event before its data is understood. ``path`` is where in the body it was, for errors.

    ``type`` is the CloudEvent type, empty for plain JSON. ``attributes`` are its other CloudEvent attributes, or
    those of the Pub/Sub message around it. ``cluster`` holds where the event names none.
    """

    data: Any
    cluster: str
    type: str = ""
    id: str = ""
    at: datetime | None = None
    attributes: Mapping[str, Any] = {}
    path: str = ""

    def step_into(self, key: str, data: Any) -> "Envelope":
        """The same event, one step further in."""
        return msgspec.structs.replace(self, data=data, path=join(self.path, key))


def join(path: str, key: str) -> str:
    """A path one step on: ``a`` and ``b`` are ``a.b``, ``a`` and ``[0]`` are ``a[0]``."""
    return path + key if key.startswith("[") or not path else f"{path}.{key}"


def parse(body: bytes | str, path: str = "") -> Any:
    """Strict JSON: no NaN, no trailing text, valid UTF-8."""
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        raise BadEvent("nested too deeply; send one event, as those in events/samples", path) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadEvent(f"not JSON: {error}; send one event, as those in events/samples", path) from None


def dump_event(event: Envelope) -> bytes:
    """An event that was read, as JSON again."""
    try:
        return msgspec.json.encode(event.data)
    except RecursionError:
        raise BadEvent("nested too deeply; send one event, as those in events/samples", event.path) from None


def parse_content(content: bytes | str, path: str) -> Any:
    """Content of an envelope: JSON, or ``Text`` where it does not even begin as an object or an array."""
    start = content.lstrip()[:80]
    words = start.decode(errors="replace") if isinstance(start, bytes) else start
    return parse(content, path) if words.startswith(("{", "[")) else Text(words)


def convert_shape(data: object, shape: type[T], path: str = "") -> T:
    """``data`` as a typed shape; what does not fit is named by its path."""
    try:
        return typed_json.convert(data, shape)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `")
        inner = where.rstrip("`").removeprefix("$").removeprefix(".")
        raise BadEvent(reason, join(path, inner) if inner else path) from None


def moment(text: str, path: str) -> datetime | None:
    """A time as RFC 1123 or RFC 3339 writes it; None for no text."""
    if not text:
        return None
    with suppress(msgspec.ValidationError):
        return typed_json.convert(text, Moment)
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        raise BadEvent(f"Expected a time, not {text!r:.40}", path) from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def from_cloudevent(around: Envelope, attributes: Mapping[str, Any], data: Any) -> Envelope:
    """The event that CloudEvent attributes describe. Attribute names are read in any case.

    The extension ``cluster`` says which cluster a source stands in, where its events do not.
    """
    try:
        event = CloudEvent(dict(attributes), data)
    except (GenericException, TypeError) as error:
        raise BadEvent(f"not a CloudEvent: {error}", around.path) from None
    head = convert_shape({**event.get_attributes(), "id": _id_of(attributes)}, _Head, around.path)
    return msgspec.structs.replace(
        around,
        data=data,
        cluster=head.cluster or around.cluster,
        type=head.type,
        id=head.id,
        at=head.time if "time" in attributes else None,
        attributes=event.get_attributes(),
    )


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """The CloudEvent attributes that are read here."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    type: Annotated[str, msgspec.Meta(min_length=1)]
    cluster: str = ""
    time: Moment | None = None


def open_cloudevent(event: Envelope) -> Envelope:
    """Event of a CloudEvent in structured mode."""
    attributes = {key: value for key, value in event.data.items() if key not in ("data", "data_base64")}
    if (encoded := event.data.get("data_base64")) is None:
        return from_cloudevent(event, attributes, event.data.get("data"))
    path = join(event.path, "data_base64")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise BadEvent("not base64", path) from None
    return from_cloudevent(event, attributes, parse(data, path))


def name_ignored(event: Envelope, ignored: Ignored, file: str) -> Ignored:
    """An ignored event under what such events are counted by: its own source and type, or the file that reads it."""
    source, kind = event.attributes.get("source"), event.type
    match event.data:
        case {"source": str(), "detail-type": str(kind)}:
            source = event.data["source"]
        case {"kind": str(kind)} | {"eventType": str(kind)} if not event.type:
            pass
    return msgspec.structs.replace(ignored, source=str(source or file), type=kind)


def _id_of(attributes: Mapping[str, Any]) -> Any:
    # The package invents an id where there is none; an invented one would make every delivery look new.
    return next((value for key, value in attributes.items() if key.lower() == "id"), None)
