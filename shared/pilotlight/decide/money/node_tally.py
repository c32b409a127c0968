"""A node's time counted on: microseconds by owner, each once."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from pilotlight.decide.money.economics import billed_seconds
from pilotlight.decide.money.node_hours import Told, spans
from pilotlight.facts.money.bill import Holder, LineKind, MeteredNode, Stretch

MICRO = timedelta(microseconds=1)


def paid_until(node: MeteredNode) -> datetime:
    """Up to when a node that is gone is paid: its minimum, and whole increments (as its hold is settled)."""
    assert node.gone_at is not None
    lived = (node.gone_at - node.since).total_seconds()
    return node.since + timedelta(seconds=billed_seconds(node, lived))


class NodeTally:
    """Stretches of a node that is counted on, cut where the day is, at new prices and at its stop."""

    __slots__ = ("_begins", "_micros", "_paid_until", "node", "until")

    def __init__(self, node: MeteredNode, cut_at: Sequence[datetime]) -> None:
        self.node = node
        self.until = node.until
        self._begins = [*cut_at, *[old.until for old in node.earlier]] if node.earlier else cut_at
        self._paid_until = None if node.gone_at is None else paid_until(node)
        self._micros: dict[tuple[LineKind, str, str, str, datetime], int] | None = None

    def count_to(
        self, at: datetime, holders: Sequence[Holder] | None = None, parts: int = 1, *, ready: bool = False
    ) -> None:
        """Count up to a moment, or to the end of what is paid for: as others held it, or as the node has it."""
        stop = at if self._paid_until is None else min(at, self._paid_until)
        if stop <= self.until:
            return
        if holders is None:
            holders, parts, ready = self.node.holders, self.node.parts, self.node.ready
        if self._micros is None:
            known = self.node.stretches
            self._micros = {(s.kind, s.team, s.project, s.workload_class, s.begin): s.micros for s in known}
        gone_at, begins = self.node.gone_at, self._begins
        edges = begins if gone_at is None else [*begins, gone_at]
        inside = {edge for edge in edges if self.until < edge < stop}
        for last in [*sorted(inside), stop] if inside else (stop,):
            begin = begins[0] if len(begins) == 1 else max([cut for cut in begins if cut <= self.until])
            if gone_at is not None and self.until >= gone_at:
                self._add((last - self.until) // MICRO, begin, (), 1, ready=False)
            else:
                self._add((last - self.until) // MICRO, begin, holders, parts, ready=ready)
            self.until = last

    def count_since(self, last: datetime | None, says: Told, at: datetime) -> None:
        """Count up to a look by what the node tells of the time since the look before: until then nothing changed."""
        if last is not None:
            self.count_to(min(last, at))
        for end, holders, parts, ready in spans(self.node, says, self.until, at):
            self.count_to(end, holders, parts, ready=ready)

    def _add(self, micros: int, begin: datetime, holders: Sequence[Holder], parts: int, *, ready: bool) -> None:
        """A span's microseconds by owner. What nobody holds takes the rest, so that they add up."""
        assert self._micros is not None
        sums, left = self._micros, micros
        for holder in holders:
            share = micros * holder.parts // parts
            left -= share
            key: tuple[LineKind, str, str, str, datetime]
            key = "used", holder.team, holder.project, holder.workload_class, begin
            sums[key] = sums.get(key, 0) + share
        key = "idle" if ready else "shared", "", "", "", begin
        sums[key] = sums.get(key, 0) + left

    def stretches(self) -> tuple[Stretch, ...]:
        """All that is counted, in order."""
        if self._micros is None:
            return self.node.stretches
        return tuple([Stretch(*key, amount) for key, amount in sorted(self._micros.items()) if amount])

    def as_counted(self) -> MeteredNode:
        """The node with them."""
        if self.until == self.node.until:
            return self.node
        return msgspec.structs.replace(self.node, stretches=self.stretches(), until=self.until)
