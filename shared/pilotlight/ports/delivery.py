"""Messages on their way out, as the flows see it: the outbox, and the channels where people read alerts."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pilotlight.facts.messages import Alert, Outgoing


class Outbox(Protocol):
    """Where messages go out. Returns only when they are confirmed."""

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """Send each at least once under its id."""
        ...


class AlertChannel(Protocol):
    """A place where people read alerts."""

    def deliver(self, alert: Alert) -> str:
        """Show one alert, in one attempt; the provider's name for it as proof, or empty.

        Raises ``Unsure`` where it may have been shown, ``Retry`` when later may work, ``Denied`` or ``Reject`` when it
        never will. No error names a secret.
        """
        ...


@runtime_checkable
class ThreadedChannel(Protocol):
    """One where what follows on an alert can be shown with it."""

    def follow(self, alert: Alert, receipt: str) -> str:
        """The same as ``deliver``, beside what was shown under that proof."""
        ...
