"""A pass over all budget holds at every look: settle what stopped, hold for what is lit, freeze or stop the rest."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.decide.money import holds as rules
from pilotlight.decide.money.budget_limits import applies, held_amount, latest, meters, paid_until, windows
from pilotlight.decide.money.economics import calls_s, queues
from pilotlight.decide.money.holds import TICK, Lit, Short
from pilotlight.decide.money.node_end import AHEAD_S, empty_node_end, ending, stop_within
from pilotlight.errors import Conflict, Denied
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.money.budgets import NO_BUDGETS, Hold, Meter, Money
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts, budget_holds, hard_stop, ladder_steps
from pilotlight.flow.budgets.budget_room import BudgetRoom, hold_findings, settle_lost
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import node_marks
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.billing_records import CHARGED, HOLD
from pilotlight.state_schema.table import Entry
from pilotlight.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptHolds:
    """The look after holds were moved on, what the budgets leave, and what people should know."""

    snapshot: Snapshot
    money: Money
    findings: tuple[Finding, ...] = ()


def keep(deps: Deps, snapshot: Snapshot, still_ours: Callable[[], None] = lambda: None) -> KeptHolds:
    """Move every hold on: settle those of stopped nodes, hold for lit ones, freeze nodes that cannot be held for.

    ``still_ours`` is asked before each: it raises once the lease is lost. Holds of the look's ``unresolved`` decisions
    are never given back: what a call of theirs came to is not known yet.
    """
    if not deps.policy.budgets:
        return KeptHolds(snapshot=snapshot, money=NO_BUDGETS, findings=_restored(snapshot))
    keeper = _Keeper(deps, snapshot, still_ours)
    keeper.run()
    if snapshot.lost_since is not None:
        from pilotlight.flow.budgets.restored_state import count

        keeper.findings += count(deps, snapshot, keeper.meters, keeper.room)
    snapshot = _with_periods(deps, snapshot, keeper)
    nodes = rules.frozen_nodes(snapshot.view.nodes, keeper.frozen)
    view = replace(keeper.snapshot.view, nodes=nodes)
    findings = hold_findings(deps.policy, keeper.told.values(), keeper.room, keeper.kept, keeper.classes)
    findings += tuple(keeper.findings)
    return KeptHolds(snapshot=replace(snapshot, view=view), money=keeper.money(), findings=findings)


def _restored(snapshot: Snapshot) -> tuple[Finding, ...]:
    """What people should know where the state was restored and no budget could say what was spent meanwhile."""
    if snapshot.lost_since is None:
        return ()
    from pilotlight.flow.budgets.restored_state import restore_finding

    return (restore_finding(snapshot, ()),)


def keep_all(deps: Deps, snapshot: Snapshot, still_ours: Callable[[], None]) -> tuple[Snapshot, Money]:
    """The look that knows what became of the holds, and what the budgets leave; without budgets, as it is."""
    kept = keep(deps, snapshot, still_ours)
    found = (*kept.snapshot.findings, *kept.findings)
    return replace(kept.snapshot, findings=found) if kept.findings else kept.snapshot, kept.money


def _with_periods(deps: Deps, snapshot: Snapshot, keeper: "_Keeper") -> Snapshot:
    """The look that remembers the budgets' periods; what one counted whose period was changed is carried over."""
    periods = {b.account: f"{b.period}@{b.timezone}" for b in deps.policy.budgets}
    was = snapshot.memory.periods
    if periods == was:
        return snapshot
    if any(periods.get(name) != period for name, period in was.items()):
        from pilotlight.flow.budgets.changed_periods import carry_over_periods, vanished_budgets

        keeper.findings += carry_over_periods(deps, snapshot, keeper.meters, keeper.room)
        gone, left = vanished_budgets(deps, was, snapshot.now)
        keeper.findings += gone
        periods |= left
    return replace(snapshot, memory=replace(snapshot.memory, periods=periods))


class _Keeper:
    """One pass over all holds. ``frozen`` tells by instance what was cordoned and what not any more."""

    def __init__(self, deps: Deps, snapshot: Snapshot, still_ours: Callable[[], None]) -> None:
        self.deps, self.snapshot, self.now = deps, snapshot, snapshot.now
        self.still_ours = still_ours
        self.meters = meters(deps.policy.budgets, snapshot.now)
        self.charged: dict[str, datetime | None] = {}
        self.frozen: dict[str, bool] = {}
        self.findings: list[Finding] = []
        self.told: dict[str, tuple[Meter, list[Short]]] = {m.key: (m, []) for m in self.meters}
        self.due: list[datetime] = []
        self.cold: dict[str, bool] = {}
        self.capped: set[str] = set()
        self.classes: set[str] = set()
        self.kept: list[tuple[str, Hold]] = []
        self._prices = {offering.pool: offering.usd_per_hour for offering in deps.offerings}
        self.queues: Mapping[str, Seconds] = {}
        self.calls_s: Seconds = 0

    def run(self) -> None:
        """Stopped nodes first: they free money. Then nodes with work on them, then the others."""
        before = {entry.value.id: entry for entry in budget_accounts.every_hold(self.deps)}
        apart = self.deps.set_apart("hold")
        holds = [entry.value for entry in before.values() if entry.value.id not in apart]
        lit = self._still_lit(rules.lit_instances(self.snapshot.view.nodes, self.snapshot.pools), holds)
        if apart:
            from pilotlight.flow.budgets import holds_apart

            before |= holds_apart.write_unbought_holds(self.deps, before.values(), lit, self.meters)
            lit, self.cold = holds_apart.keep(self.deps, self.snapshot, before.values(), lit)
            if any(budget.hard for budget in self.deps.policy.budgets):
                self.capped |= {name for name, spent_up in self.cold.items() if spent_up}
        unresolved = self.snapshot.unresolved
        if any(rules.of_workload(hold) for hold in holds):
            from pilotlight.flow.budgets import workload_holds

            kept = workload_holds.keep(self.deps, self.snapshot, before, lit)
            holds = [hold for hold in holds if hold.id not in kept.over]
            unresolved, self.due = unresolved | kept.decisions, [*self.due, *kept.due]
        unsold = budget_holds.unsold(self.deps, holds, unresolved)
        found = rules.match(holds, lit, self.snapshot.pools, self.now, unresolved, unsold)
        for hold in found.over:
            self.still_ours()
            entry = before[hold.id]
            void = not hold.instance and hold.ended_at is None
            budget_holds.end(self.deps, Entry(entry.name, entry.version, hold), self.now, void=void)
        self.room = BudgetRoom(self.deps, self.meters, self.now)
        standing = [hold for hold, one in found.live if one is None and rules.of_workload(hold)]
        if standing:
            self.snapshot = replace(self.snapshot, view=workload_holds.without_held(self.deps, self.snapshot, standing))
        own = [(hold, one) for hold, one in found.live if one is not None or not rules.of_workload(hold)]
        told = budget_holds.tell_prices(self.deps, [before[hold.id].value for hold, _ in own if hold.id in before])
        own = [(replace(hold, told=hold.told or hold.id in told), one) for hold, one in own]
        live = [*own, *self._adopted(found.strange, holds)]
        self.queues = queues([(hold.id, hold.until, bool(one and one.pods)) for hold, one in live])
        self.calls_s = calls_s(len(live) - 1)
        for hold, one in live:
            if _frozen(hold, one):
                # What it was held for is free for the others: they may then serve.
                self.room.let_go(hold, rules.put_out(hold, self.now, _others(one), self.calls_s), self._concerned(hold))
        for hold, one in sorted(live, key=_working_first):
            self.still_ours()
            try:
                self._move_on(before.get(hold.id), hold, one)
            except Conflict:
                continue  # Another worker has moved it on.
        known = before.keys() | {hold.id for hold, _ in live}  # A Workload's has no node: it stays as it is.
        self.findings += settle_lost(self.deps, self.snapshot, self.meters, self.room.known, known)

    def _still_lit(self, lit: Sequence[Lit], holds: Iterable[Hold]) -> list[Lit]:
        """Without those that another look charged to their end after this one was taken: nothing is held for them."""
        known = {hold.instance for hold in holds}
        return [
            one
            for one in lit
            if one.instance in known or (until := self._charged(one.instance)) is None or until < self.now
        ]

    def _charged(self, instance: str) -> datetime | None:
        """Until when an instance was paid for under an earlier hold; read once."""
        if instance not in self.charged:
            found = CHARGED.get(self.deps.state, f"{self.deps.name}/{instance}")
            self.charged[instance] = found.value.until if found else None
        return self.charged[instance]

    def _adopted(self, strange: Iterable[Lit], holds: Iterable[Hold]) -> list[tuple[Hold, Lit | None]]:
        offerings = {o.pool: o for o in self.deps.offerings}
        ended = {h.instance: h.ended_at for h in holds if h.ended_at is not None and not h.void}
        out: list[tuple[Hold, Lit | None]] = []
        for one in strange:
            if one.pool in offerings:
                until = max((at for at in (self._charged(one.instance), ended.get(one.instance)) if at), default=None)
                lit_for = self.snapshot.memory.pool_class.get(one.pool, "")
                own = rules.adopt_node(one, offerings[one.pool], self.deps.policy, self.now, until, lit_for)
                out.append((own, one))
        return out

    def _move_on(self, before: Entry[Hold] | None, hold: Hold, one: Lit | None) -> None:
        hold, one = rules.as_bound(hold, one)
        pods = one.pods if one else ()
        self.classes |= {hold.terms.workload_class, *(pod.workload_class for pod in pods)}
        own = rules.commit_pods(hold, pods, self.deps.policy)
        has = (
            rules.put_out(own, self.now, _others(one), self.calls_s) if _frozen(hold, one) else rules.promised_hold(own)
        )
        wants = own if own.stopping else rules.moved_on(own, pods, self.deps.policy, self.now, self.calls_s)
        held_to = max(own.until, has.until, self.now)
        if not any(applies(meter, own.terms) for meter in self.meters):
            held_to = self.now  # No budget holds it.
        wants = rules.reprice_hold(wants, held_to, self._prices.get(own.terms.pool, own.terms.usd_per_hour))
        concerned = self._concerned(wants)
        found = self._listed(before, hold, concerned)
        own, has, wants = (replace(h, accounts=found.value.accounts) for h in (own, has, wants))
        cut, name = self.room.cut(wants, own, concerned), _named(has, one)
        if cut.until <= held_to:
            cut = replace(cut, terms=own.terms, earlier=own.earlier, told=own.told)
        refused = [m for m in concerned if self._told(m, self.room.claim(m, has, cut, name))]
        late = cut != wants and (cut.until - self.now).total_seconds() <= self._lead_s(own, pods) + TICK.total_seconds()
        if late:
            refused += [m for m in concerned if self._told(m, self.room.lacks(m, cut, wants, name))]
        after = replace(own if refused and not late else cut, frozen=bool(refused) or own.stopping)
        if refused and not own.stopping:
            after = self._stopped(after, one, [meter for meter in refused if meter.budget.hard and meter.end])
        self.kept.append((name, after))
        self._look_again(after, pods, concerned, bool(refused))
        self._cordon(hold, after, one)
        if after.frozen and one and one.node:
            spent_up = [] if pods or after.stopping else [m for m in concerned if self._spent_up(m, after)]
            self.cold[one.node.name] = bool(spent_up)
            self.capped |= {one.node.name} if any(meter.budget.hard for meter in spent_up) else set()
        if before is None or after != before.value:
            HOLD.put(self.deps.state, found.name, after, if_version=found.version)

    def _concerned(self, wants: Hold) -> list[Meter]:
        """The windows, from now on, in which something is to be held."""
        last = paid_until(wants, max(wants.until, wants.binds_until, self.now))
        own = (meter for meter in self.meters if applies(meter, wants.terms))
        return [m for meter in own for m in windows(meter, last) if m is meter or held_amount(m, wants)]

    def _listed(self, before: Entry[Hold] | None, hold: Hold, concerned: list[Meter]) -> Entry[Hold]:
        if before is None:
            name = f"{self.deps.name}/{hold.id}"
            before = Entry(name, HOLD.put(self.deps.state, name, hold, if_version=ABSENT), hold)
        return budget_accounts.list_in_accounts(self.deps, before, concerned)

    def _told(self, meter: Meter, short: Short | None) -> bool:
        """True where a node is short of something, which people are told then."""
        if short is not None:
            self.told.setdefault(meter.key, (meter, []))[1].append(short)
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
        calls_s = min(self.queues.get(hold.id, 0.0), end.early_s) if one.pods else self.calls_s
        begins = end.at - timedelta(seconds=end.stop_s + calls_s) - TICK
        if not end.may or self.deps.mode_of(one.pool) != "act" or one.pool in self.snapshot.others:
            return hold
        if begins > self.now:
            self.due.append(begins)
            return hold
        why = self.told[refused[0].key][1][-1].why
        price = hold.terms.usd_per_hour
        begun = hard_stop.begin(self.deps, one.node, end, price, why, self.now, calls_s)
        return replace(hold, stopping=begun)

    def _lead_s(self, hold: Hold, pods: Sequence[BoundPod]) -> Seconds:
        """Seconds before the end of what is held at which a stop begins: it takes its time, and its turn."""
        return stop_within(hold, pods) + self.queues.get(hold.id, 0.0)

    def _look_again(self, after: Hold, pods: Sequence[BoundPod], concerned: list[Meter], refused: bool) -> None:
        """Before a hold ends; one that is renewed, when that and when a stop would have to begin; one of an empty node
        that is held for no further, while it can still be given back in time."""
        stop = after.until - timedelta(seconds=self._lead_s(after, pods))
        ahead = after.until - timedelta(seconds=stop_within(after, pods) + self.calls_s + AHEAD_S)
        renews = (ahead, stop - TICK)
        if not refused and not after.stopping:
            self.due += renews if after.terms.stretch_s else (after.binds_until - TICK,)
        elif refused and not pods:
            self.due.append(after.until - 2 * TICK)
        self.due += [meter.end for meter in concerned if meter.end is not None and meter.start <= self.now]

    def _spent_up(self, meter: Meter, hold: Hold) -> bool:
        return rules.spent_up(meter, self.room.own(meter, hold), hold, self.now, self.calls_s)

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
            self.findings.append(Finding(subject=f"node {node.name}", code="budget-hold", message=str(no)))
        else:
            self.frozen[node.instance or node.name] = closes

    def money(self) -> Money:
        """The balances after all holds were moved on."""
        again = min((d for d in self.due if d > self.now), default=None)
        steps = ladder_steps.steps(self.deps.state, self.deps.name)
        return Money(
            balances=self.room.balances(),
            look_again_at=again,
            typical=budget_holds.typical_runs(self.deps, self.snapshot.view.nodes, self.now),
            steps=steps,
            frozen=self.cold,
            capped=frozenset(self.capped),
            lit=len(self.queues),
        )


def _named(hold: Hold, one: Lit | None) -> str:
    return one.node.name if one and one.node else hold.instance or hold.id


def _others(one: Lit | None) -> tuple[BoundPod, ...]:
    return one.node.others if one and one.node else ()


def _working_first(pair: tuple[Hold, Lit | None]) -> tuple[bool, bool, datetime, str]:
    hold, one = pair
    return not (one and one.pods), _frozen(hold, one), hold.since, hold.id


def _frozen(hold: Hold, one: Lit | None) -> bool:
    """True where a node takes nothing new and is empty, as this look shows it."""
    return hold.frozen and one is not None and one.node is not None and not (one.node.schedulable or one.pods)
