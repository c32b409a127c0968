"""Alerts and changes of capacity on their way out, each under its id; and alerts that are told once.

Whoever asks only whether people were told of something opens nothing of decisions.
"""

from typing import TYPE_CHECKING, Literal

import msgspec

from pilotlight.facts.messages import TYPES, Alert, CapacityChanged, Outgoing
from pilotlight.state_schema.marks import NOTICED, Mark
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.flow.deps import Deps

_NAMES = {kind: name for name, kind in TYPES.items()}


def alert_out(alert: Alert, id: str) -> Outgoing:
    """An alert on its way out, told once by its fingerprint."""
    return outgoing(alert, "alerts", alert.fingerprint, id)


def by_fingerprint(alert: Alert, more: str = "") -> Outgoing:
    """The same under an id of its cluster and fingerprint: two clusters may tell the same."""
    return alert_out(alert, f"{alert.cluster}-{alert.fingerprint.replace('/', '-')}{more}")


def outgoing(message: Alert | CapacityChanged, topic: Literal["alerts", "capacity"], key: str, id: str) -> Outgoing:
    """A message under its id, kept in order with others of its ``key``."""
    data = msgspec.Raw(msgspec.json.encode(message))
    return Outgoing(id=id, topic=topic, type=_NAMES[type(message)], key=key, data=data)


def tell_once(deps: "Deps", alert: Alert, again_s: Seconds | None = None) -> bool:
    """Send an alert that was not sent lately, by default in the last 40 days.

    Marked after: a crash in between tells twice rather than never.
    """
    if was_noticed(deps, alert.fingerprint):
        return False
    deps.outbox.publish([by_fingerprint(alert)])
    NOTICED.put(deps.state, f"{deps.name}/{alert.fingerprint}", Mark(), ttl_s=again_s)
    return True


def was_noticed(deps: "Deps", what: str) -> bool:
    """True where people were told of it lately."""
    return NOTICED.get(deps.state, f"{deps.name}/{what}") is not None
