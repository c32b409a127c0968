"""The clock on the wall."""

from datetime import UTC, datetime


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)
