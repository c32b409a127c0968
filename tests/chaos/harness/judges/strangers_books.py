"""A stranger's books: what every node cost, from the world's log alone, against what the budgets allow and charged.

Only whom a node counts for is Pilotlight's word: the recorded purchase, then the hold that names the instance. Every
sum, window and limit is worked out anew here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from threading import RLock
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from harness.judges.unread_pools import UnreadPools
from harness.scene import BOOT_S, CATALOG, START, counts, pool_name
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodShape
from pilotlight.state_schema.table import plain
from pilotlight.units import HOUR, Seconds
from pilotlight.world.simulation import World

CENT = Decimal("0.01")

EVE_S: Seconds = 300
"""A decision of a period's last moments is held for in that period, and may buy so long after its end."""

SKEW_S: Seconds = 5
"""Workers' clocks are wrong by less."""

SLACK_S: Seconds = 70
"""A node may be charged for so much more than it lived: the least that clouds bill, and clocks that are wrong."""


GLIMPSE_S: Seconds = 900
"""Workers that stand still or die, one after another, may leave a node unseen for so long."""

STRETCH_S: Seconds = 3600 + 2 * 600
"""What is held for a node that may be stopped reaches no further: its longest stretch, a boot and a stop."""


LIFE = "~"
"""Between a node's id and when its next life began, in the name of an earlier one."""


class _Owner(msgspec.Struct, frozen=True):
    team: str
    workload_class: str
    part: Decimal


class _Terms(msgspec.Struct):
    pool: str
    usd_per_hour: Decimal
    gpus: int
    team: str = ""
    workload_class: str = ""
    owners: tuple[_Owner, ...] = ()

    @property
    def whose(self) -> tuple[_Owner, ...]:
        """Who pays, each for which part."""
        return self.owners or (_Owner(self.team, self.workload_class, Decimal(1)),)


class _Hold(msgspec.Struct):
    """What is read of a hold's record: whose node, which, since when, and after which other hold of it."""

    since: datetime
    terms: _Terms
    instance: str = ""
    frozen: bool = False
    matched_at: datetime | None = None
    after: str = ""


class _Holds(msgspec.Struct):
    items: dict[str, msgspec.Raw]


class _Account(msgspec.Struct):
    settled: Decimal = Decimal(0)


class BookedNode:
    """One node while it is one owner's, or the part of it that is. ``due_s`` is when what it was bought for ends at the
    soonest; ``charged_s`` what its hold spans."""

    def __init__(self, pool: str, price: Decimal, gpus: Decimal, launched_s: Seconds) -> None:
        self.pool, self.price, self.gpus, self.launched_s = pool, price, gpus, launched_s
        self.ended_s: Seconds | None = None
        self.due_s = launched_s
        self.team = self.workload_class = ""
        self.known = self.held = self.frozen = False
        self.charged_s = (launched_s, launched_s)

    @property
    def glimpsed(self) -> bool:
        """Whether it came and went before anybody could write down whose it was."""
        return self.ended_s is not None and not self.held and self.ended_s - self.launched_s < GLIMPSE_S

    def lived_s(self, day: "Day", now_s: Seconds) -> Seconds:
        """How much of a day it was paid for."""
        return day.inside(self.launched_s, now_s if self.ended_s is None else self.ended_s)

    def measure(self, budget: Budget, seconds: Seconds) -> Decimal:
        """What so long a time takes of a budget of dollars or GPU-hours."""
        rate = self.price if budget.usd is not None else self.gpus
        return rate * Decimal(max(0.0, seconds)) / Decimal(HOUR)


class Day(NamedTuple):
    """A budget's period in seconds of the world, and its name in keys."""

    start_s: Seconds
    end_s: Seconds
    name: str

    def inside(self, from_s: Seconds, to_s: Seconds) -> Seconds:
        """How much of a time is within it."""
        return max(0.0, min(to_s, self.end_s) - max(from_s, self.start_s))


class StrangersBooks:
    """Fed by the world's log and the store's writes; asked at each purchase and at the end."""

    def __init__(self, policy: Policy) -> None:
        self.budgets = policy.budgets
        self.unread = UnreadPools()
        self._classes = policy.classes
        self._nodes: dict[str, BookedNode] = {}
        self._kinds: dict[str, tuple[Decimal, Decimal]] = {}
        self._holds: dict[str, str] = {}
        self._handed_over: dict[str, datetime] = {}
        self.whose: dict[str, tuple[_Owner, ...]] = {}
        self._beside: dict[str, list[BookedNode]] = {}
        self._claims: dict[str, _Terms] = {}
        self._terms: dict[str, _Terms] = {}
        self.owes: Callable[[str], int] = lambda pool: 0
        """Nodes that a pool was asked for and may still make."""
        self._places: dict[str, dict[str, msgspec.Raw]] = {}
        self._lock = RLock()

    def log(self, record: dict[str, Any]) -> None:
        """A record of the world's log."""
        with self._lock:
            if record["event"] == "launch":
                kind = CATALOG.instance_types[record["type"]]
                pool = pool_name(record["type"], record["capacity_type"])
                price = kind.prices[record["capacity_type"]].usd_per_hour
                self._kinds[record["node"]] = price, Decimal(kind.gpus)
                self._nodes[record["node"]] = BookedNode(pool, *self._kinds[record["node"]], record["t"])
            elif record["event"] in ("terminate", "standby"):
                for entry in (self._nodes[record["node"]], *self._beside.get(record["node"], ())):
                    entry.ended_s = record["t"] if entry.ended_s is None else entry.ended_s
            elif record["event"] == "wake":
                self._lives_again(record["node"], record["t"])

    def _lives_again(self, id: str, now_s: Seconds) -> None:
        """A start of a stopped node is another life of it: the one before keeps its books under a name of its own."""
        before = self._past(id, now_s)
        self._nodes[id] = BookedNode(before.pool, *self._kinds[id], now_s)

    def _past(self, id: str, now_s: Seconds) -> BookedNode:
        """The books of a node so far, under a name of their own."""
        before = self._nodes.pop(id)
        past = f"{id}{LIFE}{now_s:g}"
        self._nodes[past] = before
        self._holds = {key: past if of == id else of for key, of in self._holds.items()}
        self.whose.pop(id, None)
        self._beside.pop(id, None)
        return before

    def _changes_hands(self, id: str, whose: Sequence[_Owner], since_s: Seconds) -> None:
        """From here on others pay for it, each for a part: also of one that went before its hold said so.

        Of two holds that name it, as half of an exchange does, the older may keep it: who had it meanwhile never did.
        """
        beside = self._beside.get(id, [])
        before = self._past(id, since_s)
        gone_s = before.ended_s
        since_s = since_s if gone_s is None else min(since_s, gone_s)
        for entry in (before, *beside, *self._ended_after(id, since_s)):
            entry.ended_s = since_s
        price, gpus = self._kinds[id]
        made = [BookedNode(before.pool, price * one.part, gpus * one.part, since_s) for one in whose]
        for one, entry in zip(whose, made, strict=True):
            entry.team, entry.workload_class, entry.known, entry.held = one.team, one.workload_class, True, True
            entry.ended_s = gone_s
        self._nodes[id], self._beside[id] = made[0], made[1:]
        self._nodes |= {f"{id}{LIFE}{since_s:g}.{n}": entry for n, entry in enumerate(made[1:])}

    def _ended_after(self, id: str, since_s: Seconds) -> list[BookedNode]:
        """The books of a node whose time was taken to end later than that."""
        past = [entry for name, entry in self._nodes.items() if name.startswith(f"{id}{LIFE}")]
        return [entry for entry in past if entry.ended_s is not None and entry.ended_s > since_s]

    @property
    def entries(self) -> dict[str, BookedNode]:
        """All nodes so far, by id."""
        with self._lock:
            return dict(self._nodes)

    def bought(self, nodes: Sequence[str], terms: Sequence[Terms], run_s: Seconds) -> None:
        """For whom nodes were bought, and the shortest run of what they were bought for."""
        with self._lock:
            for id, own in zip(sorted(nodes), terms, strict=False):
                entry = self._nodes[id]
                entry.team, entry.workload_class, entry.known = own.team, own.workload_class, True
                entry.due_s = entry.launched_s + BOOT_S + run_s

    def wrote(self, key: str, value: bytes, now_s: Seconds) -> None:
        """Holds that lie together were written: some are new or changed, some gone."""
        items = msgspec.json.decode(plain(value), type=_Holds).items
        with self._lock:
            was, self._places[key] = self._places.get(key, {}), items
            for id, record in items.items():
                if was.get(id) != record:
                    self._hold(f"{key}/{id}", msgspec.json.decode(record, type=_Hold))
            for id in was.keys() - items.keys():
                self._gone(f"{key}/{id}", now_s)

    def _hold(self, key: str, hold: _Hold) -> None:
        with self._lock:
            if hold.instance not in self._nodes:
                self._claims[key] = hold.terms
                return
            self._claims.pop(key, None)
            self._handed_over[hold.after] = hold.since
            taken = self._handed_over.get(key.rpartition("/")[2])
            if taken is not None and hold.since <= taken:
                return  # It is settled: its node is another's.
            id, since_s = hold.instance, (hold.since - START).total_seconds()
            if self.whose.get(id, hold.terms.whose[:1]) != hold.terms.whose:
                from_ = hold.matched_at if key in self._holds and hold.matched_at else hold.since
                self._changes_hands(id, hold.terms.whose, (from_ - START).total_seconds())
            self.whose[id], self._holds[key], self._terms[key] = hold.terms.whose, id, hold.terms
            entry = self._nodes[id]
            if not self._beside.get(id):
                entry.team, entry.workload_class = hold.terms.team, hold.terms.workload_class
            entry.known = entry.held = True
            for each in (entry, *self._beside.get(id, ())):
                each.frozen |= hold.frozen
                each.charged_s = (min(each.charged_s[0], since_s), each.charged_s[1])

    def deleted(self, key: str, now_s: Seconds) -> None:
        """The last holds of a place were settled, or given back."""
        with self._lock:
            for id in self._places.pop(key, {}):
                self._gone(f"{key}/{id}", now_s)

    def _gone(self, key: str, now_s: Seconds) -> None:
        with self._lock:
            self._claims.pop(key, None)
            self._terms.pop(key, None)
            if key in self._holds:
                for entry in (self._nodes[self._holds[key]], *self._beside.get(self._holds[key], ())):
                    entry.charged_s = (entry.charged_s[0], now_s)

    def over(self, nodes: Sequence[str], world: World, looked_s: Seconds) -> Iterator[str]:
        """Every budget that nodes just launched take above its limit: what is spent, and what runs to its end.

        What bound after the look that the purchase rests on may pass a limit.
        """
        with self._lock:
            for budget in self.budgets:
                if not any(_counts(budget, self._nodes[id]) for id in nodes):
                    continue
                total, limit = self._committed(budget, world, looked_s)
                if total > limit:
                    yield f"{total:.2f} of {limit} of {budget.name} are spent or will be"

    def _committed(self, budget: Budget, world: World, looked_s: Seconds) -> tuple[Decimal, Decimal]:
        ours = {id: entry for id, entry in self._nodes.items() if _counts(budget, entry)}
        if budget.period == "hour":
            return sum((e.price for e in ours.values() if e.ended_s is None), Decimal(0)), limit_of(budget)
        day, total = next(days(budget, world.now_s)), Decimal(0)
        if world.now_s < day.start_s + EVE_S:
            return total, limit_of(budget)
        for id, entry in ours.items():
            if entry.ended_s is not None and not entry.held:
                continue  # It came and went between two looks: nobody could know.
            end_s = entry.ended_s
            if end_s is None:  # What may be stopped at the cap need not run to its end.
                end_s = world.now_s if self.stops(entry) else _until_s(id, entry, world, looked_s)
            total += entry.measure(budget, day.inside(entry.launched_s, end_s))
        return total, limit_of(budget)

    def spare(self, id: str, now_s: Seconds) -> str:
        """The hard budgets of a node that surely have room for all that is lit and held now; none where one has not."""
        with self._lock:
            owners = (self._nodes[id], *self._beside.get(id, ()))
            budgets = [b for b in self.budgets if b.hard and b.period != "hour" and any(_counts(b, e) for e in owners)]
            full = any(self._full(b, day, now_s) for b in budgets for day in days(b, now_s, now_s + STRETCH_S))
            return "" if full else f"though {', '.join(b.name for b in budgets) or 'no budget'} has room"

    def spare_of(self, id: str, shape: PodShape, stretch_s: Seconds, now_s: Seconds) -> str:
        """The same of the budgets that count a team's pods of a class on a node, the pod's own stretch beside."""
        with self._lock:
            entry = self._nodes[id]
            budgets = [b for b in self.budgets if b.hard and counts(b, entry.pool, shape.team, shape.workload_class)]
            full = any(
                self._rate(b) > limit_of(b)
                if b.period == "hour"
                else self._full(b, day, now_s, self._own(b, id, shape, day.inside(now_s, now_s + stretch_s)))
                for b in budgets
                for day in days(b, now_s, now_s + STRETCH_S)
            )
            return "" if full else f"though {', '.join(b.name for b in budgets) or 'no budget'} has room"

    def _own(self, budget: Budget, id: str, shape: PodShape, stretch_s: Seconds) -> Decimal:
        """What a stretch of a pod takes of a budget that does not count its node yet: its part by GPUs."""
        entries = (self._nodes[id], *self._beside.get(id, ()))
        if any(_counts(budget, entry) and entry.ended_s is None for entry in entries):
            return Decimal(0)
        part = min(Decimal(1), Decimal(shape.gpu.total_milli) / 1000 / self._kinds[id][1])
        return part * self._nodes[id].measure(budget, stretch_s)

    def _rate(self, budget: Budget) -> Decimal:
        """Dollars an hour of all that is lit or on its way, and of one node more."""
        lit = sum((entry.price for entry in self.of(budget) if entry.ended_s is None), Decimal(0))
        for own in self._asked():
            lit += own.usd_per_hour * counts(budget, own.pool, own.team, own.workload_class)
        return lit + max(price for price, _ in self._kinds.values())

    def _asked(self) -> list[_Terms]:
        """Terms of what is held for nodes that may come: of holds without a node, and of as many whose node went as
        their pool may still make beside. Whose a node was that came for a request nobody can tell there."""
        found = list(self._claims.values())
        for key, own in self._terms.items():
            ended = self._nodes[self._holds[key]].ended_s is not None
            if ended and sum(one.pool == own.pool for one in found) < self.owes(own.pool):
                found.append(own)
        return found

    def _full(self, budget: Budget, day: Day, now_s: Seconds, beside: Decimal = Decimal(0)) -> bool:
        most = beside
        for entry in self.of(budget):
            late = entry.ended_s is None or entry.ended_s > now_s - STRETCH_S
            most += entry.measure(budget, entry.lived_s(day, now_s) + SLACK_S + (STRETCH_S if late else 0))
        for own in self._asked():
            if counts(budget, own.pool, own.team, own.workload_class):
                rate = own.usd_per_hour if budget.usd is not None else Decimal(own.gpus)
                most += rate * Decimal(STRETCH_S) / Decimal(HOUR)
        return most > limit_of(budget)

    def stops(self, entry: BookedNode) -> bool:
        """Whether what a node was bought for may be stopped at a hard cap."""
        return any(entry.workload_class == name and rules.stops for name, rules in self._classes.items())

    def of(self, budget: Budget) -> list[BookedNode]:
        """The nodes that count against a budget."""
        return [entry for entry in self._nodes.values() if _counts(budget, entry)]

    def settled_wrongly(self, accounts: Mapping[str, bytes], now_s: Seconds) -> Iterator[str]:
        """Accounts (by budget/measure/window) charged less than their nodes cost, or more than their holds span."""
        for budget in self.budgets:
            if budget.period == "hour":
                continue
            for day in days(budget, 0.0, now_s):
                key = f"{budget.name}/{'usd' if budget.usd is not None else 'gpu_hours'}/{day.name}"
                settled = msgspec.json.decode(plain(accounts.get(key, b"{}")), type=_Account).settled
                least, most = self._bounds(budget, day)
                if not least <= settled <= most:
                    yield f"{key} was charged {settled:.3f}, and its nodes cost between {least:.3f} and {most:.3f}"

    def _bounds(self, budget: Budget, day: Day) -> tuple[Decimal, Decimal]:
        least = most = Decimal(0)
        for entry in self._nodes.values():
            if entry.held and _counts(budget, entry):
                ended_s = entry.ended_s if entry.ended_s is not None else entry.launched_s
                begun_s, gone_s = entry.charged_s
                lived_s = day.inside(entry.launched_s, ended_s)
                least += entry.measure(budget, lived_s - SLACK_S)
                most += entry.measure(budget, day.inside(begun_s - SLACK_S, max(ended_s, gone_s) + SLACK_S))
        return least, most


def _counts(budget: Budget, entry: BookedNode) -> bool:
    return entry.known and counts(budget, entry.pool, entry.team, entry.workload_class)


def _until_s(id: str, entry: BookedNode, world: World, looked_s: Seconds) -> Seconds:
    """Until when a live node is surely paid for, as far as that look showed."""
    node = world.nodes.get(id.partition(LIFE)[0])
    if node is None or not node.ready:
        return max(world.now_s, entry.due_s)
    return max([world.now_s, *(job.due_s for job in node.jobs.values() if job.start_s < looked_s - SKEW_S)])


def limit_of(budget: Budget) -> Decimal:
    """What a budget of dollars or GPU-hours may take in a period."""
    limit = budget.usd if budget.usd is not None else budget.gpu_hours
    assert limit is not None
    return limit


def days(budget: Budget, from_s: Seconds, to_s: Seconds | None = None) -> Iterator[Day]:
    """The days of a budget's own zone from the one around a second of the world up to the one around another."""
    zone = ZoneInfo(budget.timezone)
    date = (START + timedelta(seconds=from_s)).astimezone(zone).date()
    while True:
        first = datetime(date.year, date.month, date.day, tzinfo=zone)
        date += timedelta(days=1)
        then = datetime(date.year, date.month, date.day, tzinfo=zone)
        start_s, end_s = ((at - START).total_seconds() for at in (first, then))
        if to_s is not None and start_s > to_s:
            return
        yield Day(start_s, end_s, f"{first.astimezone(START.tzinfo):%Y%m%dT%H%M}")
