"""Messages written as structured CloudEvents, as they travel between functions."""

import msgspec

from pilotlight.facts.messages import TYPES, Message, Outgoing

SOURCE = "pilotlight"
CONTENT_TYPE = "application/cloudevents+json"

_TYPE_OF = {shape: name for name, shape in TYPES.items()}


class _Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A structured CloudEvent. ``partitionkey`` keeps messages of one pool in order."""

    specversion: str
    id: str
    source: str
    type: str
    data: object
    datacontenttype: str = ""
    partitionkey: str = ""


def encode(message: Message, *, id: str, source: str = SOURCE) -> bytes:
    """A message as the body of a request, under a delivery id."""
    return _write(id, source, _TYPE_OF[type(message)], message)


def encode_outgoing(outgoing: Outgoing, *, source: str = SOURCE) -> bytes:
    """A message on its way out, under its own stable id."""
    return _write(outgoing.id, source, outgoing.type, outgoing.data, outgoing.key)


def _write(id: str, source: str, type: str, data: object, key: str = "") -> bytes:
    return msgspec.json.encode(
        _Wire(
            specversion="1.0",
            id=id,
            source=source,
            type=type,
            data=data,
            datacontenttype="application/json",
            partitionkey=key,
        )
    )
