"""Holds of lit nodes moved on, all together: what each is to cover, what its budgets grant, what becomes of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import field
from msgspec.structs import replace

from pilotlight.decide.money import holds as rules
from pilotlight.decide.money.budget_limits import applies, held_amount, latest, paid_until, windows
from pilotlight.decide.money.economics import calls_s, queues
from pilotlight.decide.money.holds import TICK, Away, Lit, Short
from pilotlight.decide.money.node_end import AHEAD_S, empty_node_end, ending, stop_within
from pilotlight.errors import Denied
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.money.budgets import Hold, Meter, Terms
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.budgets.budget_room import BudgetRoom
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import node_marks
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.state_schema.table import Kept
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.flow.budgets.hold_funding import Funding

Live = tuple[Hold, Lit | None]
"""A hold with its instance; None where that is on its way."""


class Gathered(msgspec.Struct):
    """What a pass over all holds finds."""

    due: list[datetime] = field(default_factory=list)  # When a hold must next be moved on.
    frozen: dict[str, bool] = field(default_factory=dict)  # Instances that were cordoned, and that are not any more.
    cold: dict[str, bool] = field(default_factory=dict)
    """Nodes that nothing may bind to, by name; true for an empty one for whose idling nothing more is held."""
    capped: set[str] = field(default_factory=set)  # Those of them whose idling a hard budget ends.
    kept: list[tuple[str, Hold]] = field(default_factory=list)  # Holds that stay, by their nodes.
    told: dict[str, tuple[Meter, list[Short]]] = field(default_factory=dict)  # What each meter is short of, by key.
    findings: list[Finding] = field(default_factory=list)
    away: Mapping[str, Away] = field(default_factory=dict)  # By instance: pods that leave it for want of dollars.


class Cover(NamedTuple):
    """A hold by what it covers: its ``own`` with its pods, what it ``has`` in any case, what it ``wants`` in the
    windows ``concerned``; up to ``held_to`` something is held for it. ``as_seen`` is the hold itself."""

    own: Hold
    has: Hold
    wants: Hold
    held_to: datetime
    as_seen: Hold
    concerned: list[Meter]


class Asked(NamedTuple):
    """A hold that asked for what it wants: as it was read, with its node; ``cut`` is what the limits leave room for."""

    found: Kept[Hold]
    cover: Cover
    one: Lit | None
    cut: Hold
    short: Sequence[tuple[Meter, Short]]
    late: bool


class HoldMoves:
    """The moves of one pass: of these ``live`` holds, within the ``room`` that the accounts leave.

    First every hold lists the accounts that it needs. Then all ask, and each account is written once with what it holds
    for all of them. Only then do holds become what they asked for, each a record that says no more than its accounts
    hold. A crash in between leaves accounts that hold more than the records say: the next look asks for the same again.
    """

    def __init__(
        self,
        deps: Deps,
        snapshot: Snapshot,
        limits: Sequence[Meter],
        live: Sequence[Live],
        got: Gathered,
        still_ours: Callable[[], None],
    ) -> None:
        self.deps, self.snapshot, self.now, self.limits, self.got = deps, snapshot, snapshot.now, limits, got
        self.still_ours, self.live = still_ours, sorted(live, key=working_first)
        self._made, self._alike = dict[str, list[Meter]](), dict[tuple[object, ...], list[Meter]]()
        self._prices = {offering.pool: offering.usd_per_hour for offering in deps.offerings}
        self._queues = queues([(hold.id, hold.until, bool(one and one.pods)) for hold, one in live])
        self._calls_s = calls_s(len(live) - 1)

    def move_on(self, before: Mapping[str, Kept[Hold]]) -> BudgetRoom:
        """Hold for what each node needs from here on; freeze it, or stop it, where that is not granted. The room that
        is left. A hold that another worker has moved on stays as that one has it."""
        bound = [rules.as_bound(hold, one) for hold, one in self.live]
        covers = {hold.id: self._cover(hold, one) for hold, one in bound}
        self.still_ours()
        found = self._listed(before, covers)
        records: dict[str, tuple[Hold | None, Hold]] = {}
        for asked in self._ask_all(found, [(covers[hold.id], one) for hold, one in bound if hold.id in found]):
            self.still_ours()
            after, id = self._become(asked), asked.cover.own.id
            if id not in before or after != before[id].value:
                records[id] = asked.found.was, after
        HOLD.change(self.deps.state, self.deps.name, records)
        return self.room

    def _listed(self, before: Mapping[str, Kept[Hold]], covers: Mapping[str, Cover]) -> dict[str, Kept[Hold]]:
        """The holds with every account listed in which something is to be held, but those that another has changed."""
        fresh: dict[str, tuple[Meter, list[Hold]]] = {}
        for cover in covers.values():
            for meter in cover.concerned:
                if not budget_accounts.is_listed(cover.own, meter.key):
                    fresh.setdefault(meter.key, (meter, []))[1].append(cover.own)
        named = budget_accounts.names_for(self.deps, fresh)
        out = {id: before.get(id) or Kept(id, None, cover.as_seen) for id, cover in covers.items()}
        listed = {
            id: replace(entry.value, accounts=entry.value.accounts + named.get(id, ()))
            for id, entry in out.items()
            if id in named or id not in before
        }
        lost = HOLD.change(self.deps.state, self.deps.name, {id: (out[id].was, hold) for id, hold in listed.items()})
        out |= {id: Kept(id, hold, hold) for id, hold in listed.items()}
        return {id: entry for id, entry in out.items() if id not in lost}

    def _ask_all(self, found: Mapping[str, Kept[Hold]], covers: Sequence[tuple[Cover, Lit | None]]) -> list[Asked]:
        """All of them, in one write an account; where another changed one meanwhile, one after another."""
        for singly in (False, True):
            self.room = BudgetRoom(self.deps, self.limits, self.now, singly=singly)
            self._let_go(covers)
            for cover, one in covers:
                self._begin(cover, one)
            asked = [self._ask(found[cover.own.id], cover, one) for cover, one in covers]
            if self.room.write():
                break
            self.still_ours()
        return asked

    def _let_go(self, covers: Iterable[tuple[Cover, Lit | None]]) -> None:
        """Free what empty nodes that take nothing new have beyond that, and whole runs where stretches do from now."""
        for cover, one in covers:
            hold = cover.as_seen
            if is_frozen(hold, one):
                self.room.let_go(hold, cover.has, self._concerned(hold))
            elif cover.own.terms.stretch_s != hold.terms.stretch_s:
                self.room.let_go(hold, cover.wants, self._concerned(rules.promised_hold(hold)))

    def _begin(self, cover: Cover, one: Lit | None) -> None:
        """Where pods are and nothing is held yet, hold for their stop before any other is moved on."""
        if one is None or not one.pods or cover.own.until > self.now or cover.wants.until <= self.now:
            return
        least = self.now + timedelta(seconds=self._lead_s(cover.own, one.pods)) + 2 * TICK
        begun = replace(cover.own, until=min(cover.wants.until, least))
        for meter in self._concerned(begun):
            if meter.budget.hard:
                self.room.claim(meter, cover.has, begun, _named(cover.has, one))

    def _ask(self, found: Kept[Hold], cover: Cover, one: Lit | None) -> Asked:
        own, has, wants, concerned = cover.own, cover.has, cover.wants, cover.concerned
        if own.accounts != found.value.accounts:
            own, has, wants = (replace(hold, accounts=found.value.accounts) for hold in (own, has, wants))
            cover = cover._replace(own=own, has=has, wants=wants)
        cut, name = self._cut(cover), _named(has, one)
        short = [(m, lack) for m in concerned if (lack := self.room.claim(m, has, cut, name))]
        late = self._is_late(cut, wants, own, one.pods if one else ())
        short += [(m, lack) for m in concerned if late and (lack := self.room.lacks(m, cut, wants, name))]
        return Asked(found, cover, one, cut, short, late)

    def _become(self, asked: Asked) -> Hold:
        _, cover, one, cut, short, late = asked
        own, hold, concerned, pods = cover.own, cover.as_seen, cover.concerned, one.pods if one else ()
        for meter, lack in short:
            self.got.told.setdefault(meter.key, (meter, []))[1].append(lack)
        after = replace(own if short and not late else cut, frozen=bool(short) or own.stopping)
        if short and not own.stopping:
            after = self._stopped(after, one, [meter for meter, _ in short if meter.budget.hard and meter.end])
        if one is not None and one.node is not None and not after.stopping:
            after = self._without_unfunded(hold, after, one.node)
        self.got.kept.append((_named(cover.has, one), after))
        self._look_again(after, pods, concerned, bool(short))
        self._cordon(hold, after, one)
        self._note_cold(after, one, concerned)
        return after

    def _cover(self, hold: Hold, one: Lit | None) -> Cover:
        """What the hold covers with the pods that are on its node now, and what it is to cover until the next look."""
        pods = one.pods if one else ()
        own = rules.commit_pods(hold, pods, self.deps.policy)
        if is_frozen(hold, one):
            has = rules.put_out(own, self.now, _others(one), self._calls_s)
        else:
            has = rules.promised_hold(own)
        wants = own if own.stopping else rules.moved_on(own, pods, self.deps.policy, self.now, self._calls_s)
        held_to = max(own.until, has.until, self.now) if self._limits_of(own.terms) else self.now  # No budget holds it.
        wants = rules.reprice_hold(wants, held_to, self._prices.get(own.terms.pool, own.terms.usd_per_hour))
        return Cover(own, has, wants, held_to, hold, self._concerned(wants))

    def _cut(self, cover: Cover) -> Hold:
        """As much of what is wanted as every limit leaves room for; at the old price where that is nothing more."""
        own, cut = cover.own, self.room.cut(cover.wants, cover.own, cover.concerned)
        stays = cut.until > cover.held_to or cut.terms is own.terms
        return cut if stays else replace(cut, terms=own.terms, earlier=own.earlier, told=own.told)

    def _is_late(self, cut: Hold, wants: Hold, own: Hold, pods: Sequence[BoundPod]) -> bool:
        """True where a stretch was cut, and a stop would have to begin before the next look."""
        return cut != wants and (cut.until - self.now).total_seconds() <= self._lead_s(own, pods) + TICK.total_seconds()

    def _note_cold(self, after: Hold, one: Lit | None, concerned: Sequence[Meter]) -> None:
        """Note a node that nothing may bind to, and whether its idling is paid for no longer."""
        if after.frozen and one and one.node:
            spent_up = [] if one.pods or after.stopping else [m for m in concerned if self._spent_up(m, after)]
            self.got.cold[one.node.name] = bool(spent_up)
            self.got.capped |= {one.node.name} if any(meter.budget.hard for meter in spent_up) else set()

    def _limits_of(self, own: Terms) -> list[Meter]:
        key = own.pool, own.workload_class, own.team, own.owners  # Nodes of such terms are counted alike.
        return self._alike.get(key) or self._alike.setdefault(key, [m for m in self.limits if applies(m, own)])

    def _concerned(self, wants: Hold) -> list[Meter]:
        """The windows, from now on, in which something is to be held."""
        last = paid_until(wants, max(wants.until, wants.binds_until, self.now))
        limits = ((m, self._made.setdefault(m.key, [m])) for m in self._limits_of(wants.terms))
        return [m for own, made in limits for m in windows(own, last, made) if m is own or held_amount(m, wants)]

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
        if not end.may or self.deps.mode_of(one.pool) != "act" or self.snapshot.stays(one.pool, one.instance):
            return hold
        if begins > self.now:
            self.got.due.append(begins)
            return hold
        why = self.got.told[refused[0].key][1][-1].why
        from pilotlight.decide.money.hold_owners import without_room
        from pilotlight.flow.budgets import budget_stops

        if leaving := without_room(one.pods, hold.terms, refused, self.deps.policy):
            self._send_away(one.node, Away(leaving, why), hold)
            return hold
        begun = budget_stops.begin_stop(self.deps, one.node, end, hold.terms.usd_per_hour, why, self.now, calls_s)
        return replace(hold, stopping=begun)

    def _without_unfunded(self, before: Hold, after: Hold, node: Node) -> Hold:
        """Pods that nobody pays for leave; the node is closed until then, and while only such pods wait for it."""
        away = self.got.away.get(node.instance or node.name)
        if away is not None:
            self._send_away(node, away, after)
        closes = before.frozen and not after.frozen and self._stays_closed(after, node)
        if away is not None or after.visited_since is not None:
            from pilotlight.decide.money.hold_owners import visited_since

            after = replace(after, visited_since=visited_since(after, node.gpu_pods, away, self.now))
        return replace(after, frozen=True) if away is not None or closes else after

    def _send_away(self, node: Node, away: Away, hold: Hold) -> None:
        """Pods that nobody pays for leave a node that others pay for."""
        from pilotlight.flow.budgets import budget_stops

        names = ", ".join(f"{pod.namespace}/{pod.name}" for pod in away.pods[: rules.NAMED])
        message = f"{away.why}; {names} leave {node.name}, which stays with the owners that pay for it"
        self.got.findings.append(Finding(subject=f"node {node.name}", code="budget-hold", message=message))
        by = self.now + timedelta(seconds=stop_within(hold, away.pods))
        budget_stops.begin_leave(self.deps, node, away.pods, hold.terms.usd_per_hour, away.why, self.now, by)

    def _stays_closed(self, hold: Hold, node: Node) -> bool:
        """True while pods that their budgets have no room for would take it (``Funding.stays_closed``)."""
        leaving = [pod for away in self.got.away.values() for pod in away.pods]
        return bool(self.snapshot.view.pending or leaving) and self._funding.stays_closed(hold, node, leaving)

    @cached_property
    def _funding(self) -> "Funding":
        from pilotlight.flow.budgets.hold_funding import Funding  # Few looks see a closed node.

        return Funding(self.deps, self.snapshot)

    def _lead_s(self, hold: Hold, pods: Sequence[BoundPod]) -> Seconds:
        """Seconds before the end of what is held at which a stop begins: it takes its time, and its turn."""
        return stop_within(hold, pods) + self._queues.get(hold.id, 0.0)

    def _look_again(self, after: Hold, pods: Sequence[BoundPod], concerned: list[Meter], refused: bool) -> None:
        """Before a hold ends; one that is renewed, when that and when a stop would have to begin; one of an empty node
        that is held for no further, while it can still be given back in time."""
        if refused or after.stopping:
            self.got.due += (after.until - 2 * TICK,) if refused and not pods else ()
        elif after.terms.stretch_s:
            ahead = after.until - timedelta(seconds=stop_within(after, pods) + self._calls_s + AHEAD_S)
            self.got.due += (ahead, after.until - timedelta(seconds=self._lead_s(after, pods)) - TICK)
        else:
            self.got.due.append(after.binds_until - TICK)
        self.got.due += [meter.end for meter in concerned if meter.end is not None and meter.start <= self.now]

    def _spent_up(self, meter: Meter, hold: Hold) -> bool:
        return rules.spent_up(meter, self.room.own(meter, hold), hold, self.now, self._calls_s)

    def _cordon(self, before: Hold, after: Hold, one: Lit | None) -> None:
        """Frozen nodes take nothing new. The cordon comes before the record of it: repeating it is harmless."""
        node = one.node if one else None
        if node is None or self.deps.mode_of(node.pool) not in ("scale-up", "act"):
            return
        try:
            closes = after.frozen and not self.snapshot.stays(node.pool, node.instance or node.name)
            if closes and node.schedulable:
                node_marks.hold(self.deps, node.name, "budget", "its budget has no room for more on it")
            elif self._was_closed(before, node) and (not after.frozen or not (closes or node.schedulable)):
                node_marks.lift(self.deps, node.name, "budget")
            else:
                return
        except Denied as no:
            self.got.findings.append(Finding(subject=f"node {node.name}", code="budget-hold", message=str(no)))
        else:
            self.got.frozen[node.instance or node.name] = closes

    def _was_closed(self, before: Hold, node: Node) -> bool:
        """True where a budget keeps it closed: by its hold, or by the mark of a hold that is gone."""
        return before.frozen or (not node.schedulable and node_marks.is_held(self.deps, node.name, "budget"))


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
