"""When spot capacity was to be had in a zone, as somebody recorded it."""

import msgspec

from pilotlight.units import Seconds


class ZoneHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Capacity of each type in a zone over time: ``runs`` are (value, ticks of ``gap_s``), one after the other.

    A value of 0 is nothing. Above it a recording with one node says that there was room, one with more ``nodes``
    the most that there was room for.
    """

    zone: str
    gap_s: Seconds
    runs: tuple[tuple[int, int], ...]
    nodes: int = 1

    def most(self, value: int) -> int | None:
        """The most nodes of a type while a value holds; None is no limit."""
        return None if value and self.nodes <= 1 else value

    @property
    def span_s(self) -> Seconds:
        """Length of the recording."""
        return self.gap_s * sum(ticks for _, ticks in self.runs)
