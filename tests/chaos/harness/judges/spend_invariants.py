"""An audit of billing_tick: what was metered of every node against what it cost, and where each budget stands.

What a node cost is known from the world's log alone; who could know of it by when, from the ticks that came through.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

import msgspec

from harness.judges.strangers_books import LIFE, SKEW_S, SLACK_S, BookedNode, Day, StrangersBooks, days, limit_of
from harness.scene import START
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.state_schema.table import plain
from pilotlight.units import HOUR, Seconds

CENT = Decimal("0.01")
ZERO = Decimal(0)


class _Rung(msgspec.Struct):
    start: datetime
    at: Decimal = ZERO


class _Ladder(msgspec.Struct):
    rungs: dict[str, _Rung] = {}


class _Node(msgspec.Struct):
    """What is read of a metered node: its price, its stretches, whose last field is microseconds, and their end.

    One that is not gone goes on from there, unwritten, up to the last look or the day's end.
    """

    until: datetime
    gone_at: datetime | None = None
    usd_per_hour: Decimal | None = None
    stretches: list[tuple[str, str, str, str, datetime, int]] = []

    def usd(self, day: "Day", looked_s: Seconds) -> Decimal:
        """What was metered of it on a day."""
        counted_s = sum(stretch[-1] for stretch in self.stretches) / 1e6
        until_s = (self.until - START).total_seconds()
        on_s = 0.0 if self.gone_at else day.inside(until_s, max(until_s, looked_s))
        return (self.usd_per_hour or ZERO) * Decimal(counted_s + on_s) / 3600


class _Part(msgspec.Struct):
    nodes: dict[str, _Node] = {}


class _Line(msgspec.Struct):
    usd: Decimal


class _Whole(msgspec.Struct):
    lines: list[_Line] = []


class _Look(NamedTuple):
    begin_s: Seconds
    end_s: Seconds


class SpendInvariants:
    """Told of the ticks that came through and of what they wrote; asked after each and at the end."""

    def __init__(self, books: StrangersBooks, budgets: tuple[Budget, ...]) -> None:
        self._books = books
        self._budgets = {budget.name: budget for budget in budgets if budget.period != "hour"}
        self._looks: list[_Look] = []
        self._broken_off: list[_Look] = []
        self._rungs: dict[str, _Rung] = {}
        self.due: set[str] = set()
        """Fingerprints of the steps that were reached: people must be told of each."""

    def note_look(self, begin_s: Seconds, end_s: Seconds) -> None:
        """A billing tick came through."""
        self._looks.append(_Look(begin_s, end_s))

    def broke_off(self, begin_s: Seconds, end_s: Seconds) -> None:
        """A billing tick failed or its worker died: what it saw may be written, as late as that."""
        self._broken_off.append(_Look(begin_s, end_s))

    def climbed(self, value: bytes, now_s: Seconds) -> Iterator[str]:
        """What is wrong with where the budgets stand, as it was just written: in a period they only ever climb."""
        for name, rung in msgspec.json.decode(value, type=_Ladder).rungs.items():
            before, budget = self._rungs.get(name), self._budgets[name]
            self._rungs[name] = rung
            if before is not None and (rung.start, rung.at) < (before.start, before.at):
                yield f"{name} went back from {before.at} of {before.start} to {rung.at} of {rung.start}"
            day = next(d for d in days(budget, (rung.start - START).total_seconds()))
            _, most = self._spent(budget, day, now_s)
            if rung.at > _reached(budget, most):
                yield f"{name} stands at {rung.at}, and no more than {most:.2f} of {limit_of(budget)} can be spent"
            if rung.at:
                self.due.add(f"budget/{name}/{rung.start:%Y%m%dT%H%M}/{rung.at}")

    def too_low(self, now_s: Seconds) -> Iterator[str]:
        """After a tick with nobody else at work: budgets that ought to stand higher."""
        for name, budget in self._budgets.items():
            day = next(days(budget, now_s))
            if day.end_s - now_s < SKEW_S:
                continue  # By the clock of some worker it is the next day.
            least, _ = self._spent(budget, day, now_s)
            rung = self._rungs.get(name)
            at = rung.at if rung is not None and (rung.start - START).total_seconds() == day.start_s else ZERO
            if at < _reached(budget, least):
                yield f"{name} stands at {at}, and at least {least:.2f} of {limit_of(budget)} is spent"

    def miscounted(self, parts: Mapping[str, bytes], whole: Mapping[str, bytes], now_s: Seconds) -> Iterator[str]:
        """Nodes that were metered otherwise than they cost, and days that were closed otherwise than their nodes cost.

        ``parts`` are ``metering/`` by day and part, ``whole`` are ``meter/`` by day.
        """
        nodes: dict[str, Decimal] = {}
        looked_s = self._looks[-1].begin_s if self._looks else 0.0
        for key, value in parts.items():
            day = _day(key.partition("/")[0])
            for instance, node in msgspec.json.decode(plain(value), type=_Part).nodes.items():
                nodes[instance] = nodes.get(instance, ZERO) + node.usd(day, looked_s)
        lives: dict[str, list[BookedNode]] = {}
        for id, entry in self._books.entries.items():
            lives.setdefault(id.partition(LIFE)[0], []).append(entry)
        for id, entries in lives.items():
            yield from self._wrong(id, entries, nodes.pop(id, ZERO), now_s)
        yield from (f"{id} was metered, and never was" for id in nodes)
        for name, value in whole.items():
            told = sum((line.usd for line in msgspec.json.decode(plain(value), type=_Whole).lines), ZERO)
            least, most = self._cost(_day(name), now_s)
            if not least - CENT <= told <= most + CENT:
                yield f"{name} was closed at ${told:.4f}, and its nodes cost between ${least:.4f} and ${most:.4f}"

    def _cost(self, day: Day, now_s: Seconds) -> tuple[Decimal, Decimal]:
        """The least and the most that the nodes of a day can be metered at."""
        least = most = ZERO
        for entry in self._books.entries.values():
            known_s, most_s = self._span(entry, now_s)
            least += entry.price * _hours(day.inside(entry.launched_s, known_s) - SLACK_S)
            most += entry.price * _hours(day.inside(entry.launched_s - SLACK_S, most_s + SLACK_S))
        return least, most

    def _wrong(self, id: str, lives: list[BookedNode], usd: Decimal, now_s: Seconds) -> Iterator[str]:
        least = most = ZERO
        for entry in lives:
            known_s, most_s = self._span(entry, now_s)
            least += entry.price * _hours(known_s - entry.launched_s - SLACK_S)
            most += entry.price * _hours(most_s - entry.launched_s + SLACK_S)
        if not least - CENT <= usd <= most + CENT:
            yield f"{id} was metered at ${usd:.4f}, and cost between ${least:.4f} and ${most:.4f}"

    def _span(self, entry: BookedNode, now_s: Seconds) -> tuple[Seconds, Seconds]:
        """Up to when a node is surely counted, and up to when it may be: the first look that could miss it.

        A look may miss a node that joins while it looks: two have to have seen it. One that saw it alive, and stood
        still before it wrote that down, makes it known so much later. Looks that could not read its pool's group saw
        nothing of it, until one could.
        """
        end_s = now_s if entry.ended_s is None else entry.ended_s
        first_s = self._books.unread.known_s(entry.pool, entry.launched_s)
        told = [look for look in self._looks if look.begin_s >= first_s and look.end_s < end_s]
        while told and not self._books.unread.told(entry.pool, entry.launched_s, told[0]):
            told = told[1:]
        seen = len(told) >= 2
        last_s = self._looks[-1].begin_s if self._looks else 0.0
        known_s = max(entry.launched_s, min(end_s, last_s)) if seen else entry.launched_s
        if entry.ended_s is None:
            return known_s, now_s
        looks = (*self._looks, *self._broken_off)
        saw = (look.end_s for look in looks if look.begin_s < end_s and look.end_s > entry.launched_s)
        missed_s = max([end_s, *saw])
        return known_s, min((look.end_s for look in self._looks if look.begin_s >= missed_s), default=now_s)

    def _spent(self, budget: Budget, day: Day, now_s: Seconds) -> tuple[Decimal, Decimal]:
        """The least and the most that can be spent of a budget on a day. Of a team or a class only the most is known:
        whose a node's time is depends on who holds it."""
        scope = budget.scope
        of_pool = scope.pool if isinstance(scope, BudgetScope) else None
        exact = not isinstance(scope, BudgetScope) or of_pool is not None
        least = most = ZERO
        for entry in self._books.entries.values():
            if of_pool in (None, entry.pool):
                known_s, most_s = self._span(entry, now_s)
                surely_s = day.inside(entry.launched_s, known_s) - SLACK_S if exact else 0.0
                least += entry.measure(budget, surely_s)
                most += entry.measure(budget, day.inside(entry.launched_s - SLACK_S, most_s + SLACK_S))
        return least, most


def _day(name: str) -> Day:
    """A day in UTC."""
    start_s = (datetime.fromisoformat(name).replace(tzinfo=START.tzinfo) - START).total_seconds()
    return Day(start_s, start_s + 24 * HOUR, name)


def _hours(seconds: Seconds) -> Decimal:
    return Decimal(max(0.0, seconds)) / 3600


def _reached(budget: Budget, spent: Decimal) -> Decimal:
    return max((step.at for step in budget.ladder if spent >= step.at * limit_of(budget)), default=ZERO)
