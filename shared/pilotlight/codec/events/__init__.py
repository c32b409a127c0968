"""Events from outside, read into messages; messages, written as CloudEvents. One file a source."""

from pilotlight.codec.events.decoding import decode
from pilotlight.codec.events.encoding import encode, encode_outgoing
from pilotlight.codec.events.envelope import Delivery, Ignored, Refused

__all__ = ["Delivery", "Ignored", "Refused", "decode", "encode", "encode_outgoing"]
