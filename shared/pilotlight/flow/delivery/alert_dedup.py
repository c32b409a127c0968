"""Alerts in the state's keeping, told or waiting: the same message again is known before the policy is read."""

from hashlib import blake2b

import msgspec

from pilotlight.facts.messages import Alert
from pilotlight.ports.state import State
from pilotlight.state_schema.marks import HEARD, Mark


def was_heard(state: State, alert: Alert) -> bool:
    """True where this very message was taken in before; one without a time may be another one of its like."""
    return alert.at is not None and HEARD.get(state, _name(alert)) is not None


def hear(state: State, alert: Alert) -> None:
    """Every channel has told it, or has it waiting in the state. Its proof on each channel lasts longer than this."""
    if alert.at is not None:
        HEARD.put(state, _name(alert), Mark())


def _name(alert: Alert) -> str:
    return f"{alert.cluster}/{blake2b(msgspec.json.encode(alert), digest_size=16).hexdigest()}"
