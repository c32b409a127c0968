"""Zones whose spot capacity comes and goes as it was recorded."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from random import Random

from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.units import Seconds
from pilotlight.world.world_nodes import WorldNode

NOTICE_S: Seconds = 120.0
"""A ready node is told so long before it is taken, even where its zone is back by then."""

MICRO_S: Seconds = 1e-6
"""Moments of sums of ticks are rounded to it."""


class Zones:
    """When each zone has room, by one offset for all of them, drawn from the seed; each history wraps at its end."""

    def __init__(self, histories: Sequence[ZoneHistory], seed: int) -> None:
        self._span_s = {history.zone: history.span_s for history in histories}
        longest_s = max(self._span_s.values(), default=0.0)
        self.offset_s = Random(f"{seed}/spot-trace").uniform(0.0, longest_s) if histories else 0.0
        self._begins: dict[str, list[Seconds]] = {}
        self._most: dict[str, list[int | None]] = {}
        for history in histories:
            spells = list(_spells(history))
            self._begins[history.zone] = [begins_s for begins_s, _ in spells]
            self._most[history.zone] = [most for _, most in spells]

    @property
    def names(self) -> tuple[str, ...]:
        """The zones by name; none where nothing was recorded."""
        return tuple(sorted(self._span_s))

    def most(self, zone: str, now_s: Seconds) -> int | None:
        """The most spot nodes of one type in a zone now; None is no limit."""
        if zone not in self._span_s:
            return None
        return self._most[zone][self._spell(zone, now_s)]

    def next_fall_s(self, zone: str, now_s: Seconds) -> Seconds | None:
        """When a zone next has less room than before, after now; None where it never has."""
        begins, most = self._begins[zone], self._most[zone]
        span_s, here = self._span_s[zone], self._spell(zone, now_s)
        lap_s = now_s - self._in_lap_s(zone, now_s)
        for ahead in range(1, len(begins) + 1):
            laps, at = divmod(here + ahead, len(begins))
            if _less(most[at], most[at - 1]):
                return lap_s + laps * span_s + begins[at]
        return None

    def _spell(self, zone: str, now_s: Seconds) -> int:
        return bisect_right(self._begins[zone], self._in_lap_s(zone, now_s) + MICRO_S) - 1

    def _in_lap_s(self, zone: str, now_s: Seconds) -> Seconds:
        span_s = self._span_s[zone]
        in_lap_s = (self.offset_s + now_s) % span_s
        return 0.0 if span_s - in_lap_s < MICRO_S else in_lap_s


def more_than_zone_holds(nodes: Iterable[WorldNode], zone: str, most: int | None) -> list[WorldNode]:
    """The spot nodes of a zone that are not told yet and that it has no room for: of each type the newest."""
    if most is None:
        return []
    by_type: dict[str, list[WorldNode]] = {}
    for node in nodes:
        if node.zone == zone and node.capacity_type == "spot" and node.doomed_s is None:
            by_type.setdefault(node.instance_type, []).append(node)
    return [node for alike in by_type.values() for node in sorted(alike, key=lambda n: n.seq)[most:]]


def _spells(history: ZoneHistory) -> Iterator[tuple[Seconds, int | None]]:
    """When each spell begins, and the most nodes in it; neighbours differ."""
    ticks = 0
    told = [(history.most(value), count) for value, count in history.runs if count]
    for most, alike in groupby(told, key=lambda run: run[0]):
        yield ticks * history.gap_s, most
        ticks += sum(count for _, count in alike)


def _less(one: int | None, other: int | None) -> bool:
    return one is not None and (other is None or one < other)
