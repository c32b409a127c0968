"""Alerts in the state's keeping, told or waiting: the same message again is known before the policy is read."""

from hashlib import blake2b

import msgspec

from pilotlight.codec.records import MARK, Mark
from pilotlight.facts.messages import Alert
from pilotlight.ports import State
from pilotlight.units import HOUR, Seconds

HEARD_S: Seconds = 24 * HOUR
"""How long a sender may bring the same message again. Its proof on each channel lasts longer."""


def heard(state: State, alert: Alert) -> bool:
    """Whether this very message was taken in before; one without a time may be another one of its like."""
    return alert.at is not None and state.get(_key(alert)) is not None


def hear(state: State, alert: Alert) -> None:
    """Every channel has told it, or has it waiting in the state."""
    if alert.at is not None:
        state.put(_key(alert), MARK.write(Mark()), ttl_s=HEARD_S)


def _key(alert: Alert) -> str:
    return f"heard/{alert.cluster}/{blake2b(msgspec.json.encode(alert), digest_size=16).hexdigest()}"
