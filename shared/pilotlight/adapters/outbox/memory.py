"""An outbox in this process, for replays and tests."""

from collections.abc import Sequence

from pilotlight.facts.messages import Outgoing


class MemoryOutbox:
    """Keeps what was sent, in order."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    def publish(self, messages: Sequence[Outgoing]) -> None:
        self.sent.extend(messages)
