"""Holds of lit nodes moved on, one after another: what each is to cover, what its budgets grant, what becomes of it.

A node that its budgets hold no further is stopped in order: an interruption of our own making, begun here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from pilotlight.decide.interruption.drain_plan import unsaved_work
from pilotlight.decide.money import holds as rules
from pilotlight.decide.money.budget_limits import applies, held_amount, latest, paid_until, windows
from pilotlight.decide.money.economics import LATE_S, calls_s, queues
from pilotlight.decide.money.holds import TICK, Lit, Short
from pilotlight.decide.money.node_end import AHEAD_S, Ending, empty_node_end, ending, stop_within
from pilotlight.errors import Conflict, Denied
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.interruption.interruption import STOP_KINDS, Interruption
from pilotlight.facts.money.budgets import Hold, Meter
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts, interruption_records
from pilotlight.flow.budgets.budget_room import BudgetRoom
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import node_marks
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.state_schema.table import Entry
from pilotlight.units import Seconds, UsdPerHour

Live = tuple[Hold, Lit | None]
"""A hold with its instance; None where that is on its way."""

NAMED = 5
"""An alert names so many pods."""


@dataclass(slots=True)
class Gathered:
    """What a pass over all holds finds."""

    due: list[datetime] = field(default_factory=list)  # When a hold must next be moved on.
    frozen: dict[str, bool] = field(default_factory=dict)  # Instances that were cordoned, and that are not any more.
    cold: dict[str, bool] = field(default_factory=dict)
    """Nodes that nothing may bind to, by name; true for an empty one for whose idling nothing more is held."""
    capped: set[str] = field(default_factory=set)  # Those of them whose idling a hard budget ends.
    classes: set[str] = field(default_factory=set)  # Classes of lit nodes.
    kept: list[tuple[str, Hold]] = field(default_factory=list)  # Holds that stay, by their nodes.
    told: dict[str, tuple[Meter, list[Short]]] = field(default_factory=dict)  # What each meter is short of, by key.
    findings: list[Finding] = field(default_factory=list)


class Cover(NamedTuple):
    """A hold by what it covers: its ``own`` with its pods, what it ``has`` in any case, what it ``wants``; up to
    ``held_to`` something is held for it."""

    own: Hold
    has: Hold
    wants: Hold
    held_to: datetime


class HoldMoves:
    """The moves of one pass: of these ``live`` holds, within the ``room`` that the accounts leave."""

    def __init__(self, deps: Deps, snapshot: Snapshot, room: BudgetRoom, live: Sequence[Live], got: Gathered) -> None:
        self.deps, self.snapshot, self.now, self.room, self.got = deps, snapshot, snapshot.now, room, got
        self._prices = {offering.pool: offering.usd_per_hour for offering in deps.offerings}
        self._queues = queues([(hold.id, hold.until, bool(one and one.pods)) for hold, one in live])
        self._calls_s = calls_s(len(live) - 1)

    def let_go(self, live: Iterable[Live]) -> None:
        """What empty nodes that take nothing new were held for is free for the others: they may then serve."""
        for hold, one in live:
            if is_frozen(hold, one):
                has = rules.put_out(hold, self.now, _others(one), self._calls_s)
                self.room.let_go(hold, has, self._concerned(hold))

    def move_on(self, before: Entry[Hold] | None, hold: Hold, one: Lit | None) -> None:
        """Hold for what a node needs from here on; freeze it, or stop it, where that is not granted. Raises
        ``Conflict`` where another worker has moved it on."""
        hold, one = rules.as_bound(hold, one)
        pods = one.pods if one else ()
        self.got.classes |= {hold.terms.workload_class, *(pod.workload_class for pod in pods)}
        cover = self._cover(hold, one)
        concerned = self._concerned(cover.wants)
        found = self._listed(before, hold, concerned)
        own, has, wants = (replace(h, accounts=found.value.accounts) for h in cover[:3])
        name = _named(has, one)
        cut = self._cut(Cover(own, has, wants, cover.held_to), concerned)
        refused = [m for m in concerned if self._told(m, self.room.claim(m, has, cut, name))]
        late = self._is_late(cut, wants, own, pods)
        if late:
            refused += [m for m in concerned if self._told(m, self.room.lacks(m, cut, wants, name))]
        after = replace(own if refused and not late else cut, frozen=bool(refused) or own.stopping)
        if refused and not own.stopping:
            after = self._stopped(after, one, [meter for meter in refused if meter.budget.hard and meter.end])
        self.got.kept.append((name, after))
        self._look_again(after, pods, concerned, bool(refused))
        self._cordon(hold, after, one)
        self._note_cold(after, one, concerned)
        if before is None or after != before.value:
            HOLD.put(self.deps.state, found.name, after, if_version=found.version)

    def _cover(self, hold: Hold, one: Lit | None) -> Cover:
        """What the hold covers with the pods that are on its node now, and what it is to cover until the next look."""
        pods = one.pods if one else ()
        own = rules.commit_pods(hold, pods, self.deps.policy)
        if is_frozen(hold, one):
            has = rules.put_out(own, self.now, _others(one), self._calls_s)
        else:
            has = rules.promised_hold(own)
        wants = own if own.stopping else rules.moved_on(own, pods, self.deps.policy, self.now, self._calls_s)
        held_to = max(own.until, has.until, self.now)
        if not any(applies(meter, own.terms) for meter in self.room.meters):
            held_to = self.now  # No budget holds it.
        price = self._prices.get(own.terms.pool, own.terms.usd_per_hour)
        return Cover(own, has, rules.reprice_hold(wants, held_to, price), held_to)

    def _cut(self, cover: Cover, concerned: Sequence[Meter]) -> Hold:
        """As much of what is wanted as every limit leaves room for; at the old price where that is nothing more."""
        own = cover.own
        cut = self.room.cut(cover.wants, own, concerned)
        return replace(cut, terms=own.terms, earlier=own.earlier, told=own.told) if cut.until <= cover.held_to else cut

    def _is_late(self, cut: Hold, wants: Hold, own: Hold, pods: Sequence[BoundPod]) -> bool:
        """True where a stretch was cut, and a stop would have to begin before the next look."""
        return cut != wants and (cut.until - self.now).total_seconds() <= self._lead_s(own, pods) + TICK.total_seconds()

    def _note_cold(self, after: Hold, one: Lit | None, concerned: Sequence[Meter]) -> None:
        """Note a node that nothing may bind to, and whether its idling is paid for no longer."""
        if after.frozen and one and one.node:
            spent_up = [] if one.pods or after.stopping else [m for m in concerned if self._spent_up(m, after)]
            self.got.cold[one.node.name] = bool(spent_up)
            self.got.capped |= {one.node.name} if any(meter.budget.hard for meter in spent_up) else set()

    def _concerned(self, wants: Hold) -> list[Meter]:
        """The windows, from now on, in which something is to be held."""
        last = paid_until(wants, max(wants.until, wants.binds_until, self.now))
        own = (meter for meter in self.room.meters if applies(meter, wants.terms))
        return [m for meter in own for m in windows(meter, last) if m is meter or held_amount(m, wants)]

    def _listed(self, before: Entry[Hold] | None, hold: Hold, concerned: list[Meter]) -> Entry[Hold]:
        if before is None:
            name = f"{self.deps.name}/{hold.id}"
            before = Entry(name, HOLD.put(self.deps.state, name, hold, if_version=ABSENT), hold)
        return budget_accounts.list_in_accounts(self.deps, before, concerned)

    def _told(self, meter: Meter, short: Short | None) -> bool:
        """True where a node is short of something, which people are told then."""
        if short is not None:
            self.got.told.setdefault(meter.key, (meter, []))[1].append(short)
        return short is not None

    def _stopped(self, hold: Hold, one: Lit | None, refused: list[Meter]) -> Hold:
        """A node that hard budgets hold no further is stopped in order, to be gone before what is held is used up."""
        if not refused or one is None or one.node is None or not (one.pods or one.node.others):
            return hold
        if one.pods:
            end = ending(hold, one.pods, self.deps.policy, self.now)
        else:
            held_until = min(latest(meter, hold, self.room.own(meter, hold)) for meter in refused)
            end = empty_node_end(hold, one.node.others, held_until)
        calls_s = min(self._queues.get(hold.id, 0.0), end.early_s) if one.pods else self._calls_s
        begins = end.at - timedelta(seconds=end.stop_s + calls_s) - TICK
        if not end.may or self.deps.mode_of(one.pool) != "act" or one.pool in self.snapshot.others:
            return hold
        if begins > self.now:
            self.got.due.append(begins)
            return hold
        why = self.got.told[refused[0].key][1][-1].why
        price = hold.terms.usd_per_hour
        begun = begin_stop(self.deps, one.node, end, price, why, self.now, calls_s)
        return replace(hold, stopping=begun)

    def _lead_s(self, hold: Hold, pods: Sequence[BoundPod]) -> Seconds:
        """Seconds before the end of what is held at which a stop begins: it takes its time, and its turn."""
        return stop_within(hold, pods) + self._queues.get(hold.id, 0.0)

    def _look_again(self, after: Hold, pods: Sequence[BoundPod], concerned: list[Meter], refused: bool) -> None:
        """Before a hold ends; one that is renewed, when that and when a stop would have to begin; one of an empty node
        that is held for no further, while it can still be given back in time."""
        stop = after.until - timedelta(seconds=self._lead_s(after, pods))
        ahead = after.until - timedelta(seconds=stop_within(after, pods) + self._calls_s + AHEAD_S)
        renews = (ahead, stop - TICK)
        if not refused and not after.stopping:
            self.got.due += renews if after.terms.stretch_s else (after.binds_until - TICK,)
        elif refused and not pods:
            self.got.due.append(after.until - 2 * TICK)
        self.got.due += [meter.end for meter in concerned if meter.end is not None and meter.start <= self.now]

    def _spent_up(self, meter: Meter, hold: Hold) -> bool:
        return rules.spent_up(meter, self.room.own(meter, hold), hold, self.now, self._calls_s)

    def _cordon(self, before: Hold, after: Hold, one: Lit | None) -> None:
        """Frozen nodes take nothing new. The cordon comes before the record of it: repeating it is harmless."""
        node = one.node if one else None
        if node is None or self.deps.mode_of(node.pool) not in ("scale-up", "act"):
            return
        try:
            closes = after.frozen and node.pool not in self.snapshot.others
            if closes and node.schedulable:
                node_marks.hold(self.deps, node.name, "budget", "its budget has no room for more on it")
            elif before.frozen and (not after.frozen or not (closes or node.schedulable)):
                node_marks.lift(self.deps, node.name, "budget")
            else:
                return
        except Denied as no:
            self.got.findings.append(Finding(subject=f"node {node.name}", code="budget-hold", message=str(no)))
        else:
            self.got.frozen[node.instance or node.name] = closes


def _named(hold: Hold, one: Lit | None) -> str:
    return one.node.name if one and one.node else hold.instance or hold.id


def _others(one: Lit | None) -> tuple[BoundPod, ...]:
    return one.node.others if one and one.node else ()


def working_first(pair: Live) -> tuple[bool, bool, datetime, str]:
    """The order in which holds move on: those whose nodes work first, then by age."""
    hold, one = pair
    return not (one and one.pods), is_frozen(hold, one), hold.since, hold.id


def is_frozen(hold: Hold, one: Lit | None) -> bool:
    """True where a node takes nothing new and is empty, as this look shows it."""
    return hold.frozen and one is not None and one.node is not None and not (one.node.schedulable or one.pods)


def begin_stop(
    deps: Deps, node: Node, end: Ending, price: UsdPerHour, why: str, now: datetime, calls_s: Seconds
) -> bool:
    """Record it, with an alert: the next look carries it on. Whether a stop of ours is at work on the node now.

    A stop that begins late is orderly still, in the time of a plain one; a longer grace has what is left of what is
    held. What a cloud is said to do later, or may not do at all, gives way to it. ``price`` is what the node is held
    for, ``calls_s`` what the calls take that come after its own.
    """
    earliest = now + timedelta(seconds=max(0.0, end.least_s - LATE_S))
    deadline = max(end.at - timedelta(seconds=LATE_S + calls_s), earliest)
    instance = node.instance or node.name
    known = interruption_records.find(deps, instance)
    former = known.found if known and not known.found.is_over else None
    if former is not None and (former.kind in STOP_KINDS or _goes(former, deadline)):
        return former.kind in STOP_KINDS
    found = Interruption(
        cluster=deps.name,
        instance=instance,
        kind=end.kind,
        received_at=now,
        begin=now,
        deadline=deadline,
        pool=node.pool,
        node=deps.known_as(node.name),
        ours=True,
        why=why + _in_the_way(node),
        replaced=True,
        asked=former.asked if former else {},
        evicted=former.evicted if former else {},
        cordoned=former.cordoned if former else False,
        lost={pod.uid: unsaved_work(pod, node, price, deadline) for pod in node.gpu_pods},
    )
    told = interruption_records.given_way(deps, former, price, now) if former else ()
    opening = interruption_records.opening(found, len(node.gpu_pods), price, now)
    found = msgspec.structs.replace(found, messages=(*told, opening))
    try:
        interruption_records.write(
            deps, interruption_records.Versioned(found, known.version if known and former else ABSENT)
        )
    except Conflict:
        return False  # Another look carries on what was there: it is looked at again.
    return True


def _in_the_way(node: Node) -> str:
    """The pods that would keep the node from being emptied, by name, each with its reason."""
    blocking = [f"{pod.namespace}/{pod.name} ({pod.blocks})" for pod in node.pods if pod.blocks]
    more = f" and {len(blocking) - NAMED} more" if len(blocking) > NAMED else ""
    return f"; in the way, and made to leave: {', '.join(blocking[:NAMED])}{more}" if blocking else ""


def _goes(former: Interruption, by: datetime) -> bool:
    """True where a cloud takes it for certain, no later than that."""
    return former.truth == "verified" and former.deadline is not None and former.deadline <= by
