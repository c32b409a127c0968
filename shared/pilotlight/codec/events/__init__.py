"""Codecs of events: events from outside, read into messages; messages, written as CloudEvents.

One file a source. ``decoding`` opens what is wrapped around an event (``envelope``, ``pubsub``, ``aws/``), and finds
the one that reads it; ``encoding`` writes. Only ``BadEvent`` comes out of a body that is wrong, and an event that we
have no use for is counted as ignored, by its source and type. The doorway calls it.
"""

from pilotlight.codec.events.decoding import decode
from pilotlight.codec.events.encoding import encode, encode_outgoing
from pilotlight.codec.events.envelope import Delivery, Ignored, Refused

__all__ = ["Delivery", "Ignored", "Refused", "decode", "encode", "encode_outgoing"]
