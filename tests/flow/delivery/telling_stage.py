"""A desk on a clock that is moved by hand, with channels that keep what they were told after failing by a script."""

from typing import Any

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.facts.alerts.channel_policy import Alerts
from pilotlight.facts.alerts.channel_policy import Channel as Rules
from pilotlight.facts.messages import Alert
from pilotlight.flow.delivery.desk import Desk
from pilotlight.ports.delivery import AlertChannel
from pilotlight.ports.state import State
from pilotlight.units import Seconds
from pilotlight.world.world_clock import VirtualClock


def alert(fingerprint: str = "quota/t4", **fields: Any) -> Alert:
    """A warning about a quota, or another."""
    given: dict[str, Any] = {
        "kind": "quota",
        "severity": "warning",
        "what": "no T4 left",
        "why": "the quota is used up",
    }
    return Alert(cluster="c", fingerprint=fingerprint, **{**given, **fields})


class Wall:
    """Keeps what it was told, after failing as often as its script says."""

    def __init__(self, *failures: Exception) -> None:
        self.told: list[Alert] = []
        self.tries = 0
        self._failures = list(failures)

    def fail(self, *failures: Exception) -> None:
        """From now on fail so often again."""
        self._failures += failures

    def deliver(self, alert: Alert) -> str:
        """Fail by the script, else keep the alert."""
        self.tries += 1
        if self._failures:
            raise self._failures.pop(0)
        self.told.append(alert)
        return f"receipt-{len(self.told)}"


def desk_of(
    clock: VirtualClock, channels: dict[str, AlertChannel], *, state: State | None = None, **rules: Any
) -> Desk:
    """A desk whose channels have the rules given by their names; other rules are those of all alerts."""
    named = {name: rules.pop(name, {}) for name in channels}
    return Desk(
        channels=channels,
        policy=Alerts(channels={name: Rules(kind="console", **given) for name, given in named.items()}, **rules),
        state=state or MemoryState(clock),
        outbox=MemoryOutbox(),
    )


def later(clock: VirtualClock, seconds: Seconds) -> None:
    """So much time passes."""
    clock.advance(clock.elapsed_s() + seconds)
