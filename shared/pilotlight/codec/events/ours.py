"""Our own messages: the data of a CloudEvent whose type names the message."""

from datetime import datetime

from pilotlight.codec.events.envelope import Envelope, convert_shape
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import TYPES, Message

__all__ = ["TYPES", "read"]


def read(envelope: Envelope) -> Message:
    """The message. Cluster, identity and time stand in from the envelope where the data leaves them out."""
    data = {} if envelope.data is None else envelope.data
    if not isinstance(data, dict):
        raise BadEvent("Expected `object`", envelope.step_into("data", None).path)
    shape = TYPES[envelope.type]
    known: dict[str, str | datetime | None] = {}
    if "cluster" in shape.__struct_fields__:
        known["cluster"] = envelope.cluster
    if "identity" in shape.__struct_fields__:
        known |= {"identity": envelope.id, "at": envelope.at}
    message = convert_shape({**known, **data}, shape, envelope.step_into("data", None).path)
    assert isinstance(message, Message)
    return message
