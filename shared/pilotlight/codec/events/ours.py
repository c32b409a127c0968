"""Our own messages: the data of a CloudEvent whose type names the message."""

from datetime import datetime

import msgspec

from pilotlight.codec.events.envelope import Envelope, shaped
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import TYPES, Message, PodPending, Tick

__all__ = ["TYPES", "read"]


def read(envelope: Envelope) -> Message:
    """The message. Cluster, identity and time stand in from the envelope where the data leaves them out."""
    data = {} if envelope.data is None else envelope.data
    if not isinstance(data, dict):
        raise BadEvent("Expected `object`", envelope.within("data", None).path)
    shape = TYPES[envelope.type]
    known: dict[str, str | datetime | None] = {}
    if "cluster" in shape.__struct_fields__:
        known["cluster"] = envelope.cluster
    if shape in (PodPending, Tick):
        known |= {"identity": envelope.id, "at": envelope.at}
    message = shaped({**known, **data}, shape, envelope.within("data", None).path)
    assert isinstance(message, Message)
    _refuse_naive(message, envelope)
    return message


def _refuse_naive(message: msgspec.Struct, envelope: Envelope) -> None:
    at = getattr(message, "at", None)
    if isinstance(at, datetime) and at.tzinfo is None:
        raise BadEvent("Expected a time with its zone", envelope.within("data.at", None).path)
