"""Asks for a flush where something is due: a look of a cluster needs no more of the delivery of alerts than this."""

from contextlib import suppress
from datetime import datetime

import msgspec

from pilotlight.errors import Retry
from pilotlight.facts.messages import TYPES, Outgoing, Tick
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import State
from pilotlight.state_schema.alert_records import WAITING
from pilotlight.units import clock_seconds

_TICK = next(name for name, kind in TYPES.items() if kind is Tick)


def anything_due(state: State, now: datetime) -> bool:
    """True where a flush would find something."""
    return any(entry.value.due is None or entry.value.due <= now for entry in WAITING.scan(state))


def wake(deps: Deps) -> None:
    """Send alert_fanout a tick where something is due: so it needs no schedule of its own. Best effort."""
    now = deps.state.now().replace(microsecond=0)  # One id has one content.
    with suppress(Retry):
        if anything_due(deps.alerts or deps.state, now):
            data = msgspec.Raw(msgspec.json.encode(Tick(cluster=deps.name, what="alerts", at=now)))
            id = f"alerts-{deps.name}-{clock_seconds(now):.0f}"
            deps.outbox.publish([Outgoing(id=id, topic="alerts", type=_TICK, key=deps.name, data=data)])
