"""The clock on the wall."""

from datetime import UTC, datetime


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class StoppedClock:
    """One moment, for looking at what was written down then."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        return self._moment
