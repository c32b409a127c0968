"""A pass over all budget holds at every look: settle what stopped, hold for what is lit, freeze or stop the rest."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from pilotlight.decide.money import holds as rules
from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.money.holds import Lit
from pilotlight.facts.money.budgets import NO_BUDGETS, Hold, Money
from pilotlight.facts.money.money_policy import BudgetScope
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts, budget_holds
from pilotlight.flow.budgets.budget_room import BudgetRoom, hold_findings, settle_lost
from pilotlight.flow.budgets.hold_moves import Gathered, HoldMoves, Live
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.state_schema.billing_records import CHARGED
from pilotlight.state_schema.table import Kept
from pilotlight.units import count_of


class KeptHolds(msgspec.Struct, frozen=True, kw_only=True):
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
        from pilotlight.flow.budgets.recounts import count

        keeper.got.findings += count(deps, snapshot, keeper.meters, keeper.room)
    snapshot = _with_periods(deps, snapshot, keeper)
    nodes = rules.frozen_nodes(snapshot.view.nodes, keeper.got.frozen)
    view = replace(keeper.snapshot.view, nodes=nodes)
    findings = hold_findings(deps.policy, keeper.got.told.values(), keeper.room, keeper.got.kept)
    findings += tuple(keeper.got.findings)
    return KeptHolds(snapshot=replace(snapshot, view=view), money=keeper.money(), findings=findings)


def _restored(snapshot: Snapshot) -> tuple[Finding, ...]:
    """What people should know where the state was restored and no budget could say what was spent meanwhile."""
    if snapshot.lost_since is None:
        return ()
    from pilotlight.flow.budgets.recounts import restore_finding

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
        from pilotlight.flow.budgets.recounts import carry_over_periods, vanished_budgets

        keeper.got.findings += carry_over_periods(deps, snapshot, keeper.meters, keeper.room)
        gone, left = vanished_budgets(deps, was, snapshot.now)
        keeper.got.findings += gone
        periods |= left
    return replace(snapshot, memory=replace(snapshot.memory, periods=periods))


LEFT = (
    "the policy does not name it any more, and {nodes} that we bought for it {are} lit: {names}. None is given back: "
    "name the pool again until they are gone, or end them at their cloud"
)


def _left(live: Iterable[tuple[Hold, Lit | None]], policy: Policy) -> list[Finding]:
    """Pools that the policy does not name, with nodes that we bought for them."""
    lit: dict[str, list[str]] = {}
    for hold, one in live:
        if hold.decision and one is not None and one.node is not None and hold.terms.pool not in policy.pools:
            lit.setdefault(hold.terms.pool, []).append(one.node.name)
    return [Finding(subject=f"pool {pool}", code="pool-left", message=_lit(names)) for pool, names in lit.items()]


def _lit(names: Sequence[str]) -> str:
    more = f" and {len(names) - rules.NAMED} more" if len(names) > rules.NAMED else ""
    named = f"{', '.join(names[: rules.NAMED])}{more}"
    return LEFT.format(nodes=count_of(len(names), "node"), are="are" if len(names) != 1 else "is", names=named)


class _Keeper:
    """One pass over all holds."""

    def __init__(self, deps: Deps, snapshot: Snapshot, still_ours: Callable[[], None]) -> None:
        self.deps, self.snapshot, self.now = deps, snapshot, snapshot.now
        self.still_ours = still_ours
        self.meters = meters(deps.policy.budgets, snapshot.now)
        self.charged: dict[str, datetime | None] = {}
        self.got = Gathered(told={m.key: (m, []) for m in self.meters})
        self.unresolved = snapshot.unresolved
        self.lit = 0

    def run(self) -> None:
        """Stopped nodes first: they free money. Then nodes with work on them, then the others."""
        before = {entry.value.id: entry for entry in budget_accounts.every_hold(self.deps)}
        holds, lit = self._judged(before)
        holds = self._of_living_workloads(self._after_handovers(holds, before), before, lit)
        unsold = budget_holds.unsold(self.deps, holds, self.unresolved)
        found = rules.match(holds, lit, self.snapshot.pools, self.now, self.unresolved, unsold)
        self._end(found.over, before)
        taken = [(self._from_where_charged(hold, holds), one) for hold, one in found.live]
        every = self._of_their_owners([*taken, *self._adopted(found.strange, holds)], before)
        live = self._own(every, before)
        self.lit = len(live)
        self.got.findings += _left(live, self.deps.policy)
        if live:
            moves = HoldMoves(self.deps, self.snapshot, self.meters, live, self.got, self.still_ours)
            self.room = moves.move_on(before)
        else:
            self.room = BudgetRoom(self.deps, self.meters, self.now)
        known = before.keys() | {hold.id for hold, _ in live}  # A Workload's has no node: it stays as it is.
        self.got.findings += settle_lost(self.deps, self.snapshot, self.meters, self.room.known, known)

    def _judged(self, before: dict[str, Kept[Hold]]) -> tuple[list[Hold], list[Lit]]:
        """The holds that are judged, and lit nodes but those whose holds are set apart: these stay held in full."""
        apart = self.deps.set_apart("hold")
        holds = [entry.value for entry in before.values() if entry.value.id not in apart]
        lit = self._still_lit(rules.lit_instances(self.snapshot.view.nodes, self.snapshot.pools), holds)
        if apart:
            from pilotlight.flow.budgets import holds_apart

            before |= holds_apart.write_unbought_holds(self.deps, before.values(), lit, self.meters)
            lit, cold = holds_apart.keep(self.deps, self.snapshot, before.values(), lit)
            self.got.cold |= cold
            if any(budget.hard for budget in self.deps.policy.budgets):
                self.got.capped |= {name for name, spent_up in cold.items() if spent_up}
        return holds, lit

    def _after_handovers(self, holds: list[Hold], before: Mapping[str, Kept[Hold]]) -> list[Hold]:
        """The holds, where two name one node, as its hand-over leaves them: the old one ends where the new one begins,
        and one that was written late, for a time that is paid for, has no node."""
        named = Counter(hold.instance for hold in holds if hold.instance and hold.ended_at is None)
        if not any(count > 1 for count in named.values()):
            return holds
        begun = sorted((h for h in holds if h.matched_at is not None), key=lambda h: (h.since, h.id), reverse=True)
        ends = {(hold.after, hold.instance): hold.matched_at for hold in begun}
        out: list[Hold] = []
        for hold in holds:
            if hold.ended_at is not None or named[hold.instance] < 2:
                out.append(hold)
            elif self._is_paid_for(hold, holds):
                out.append(replace(hold, instance="", matched_at=None))
            elif (at := ends.get((hold.id, hold.instance))) is not None:
                self.still_ours()
                budget_holds.end(self.deps, before[hold.id], at)
            else:
                out.append(hold)
        return out

    def _is_paid_for(self, hold: Hold, holds: Iterable[Hold]) -> bool:
        """True where another paid for its instance from before it was matched to it until after that."""
        paid, matched = self._paid_until(hold.instance, holds), hold.matched_at
        return paid is not None and matched is not None and paid >= matched and paid > hold.since

    def _of_living_workloads(
        self, holds: list[Hold], before: Mapping[str, Kept[Hold]], lit: Sequence[Lit]
    ) -> list[Hold]:
        """The holds without those of Workloads that are over; what lives on may still get its nodes from another."""
        if not any(rules.of_workload(hold) for hold in holds):
            return holds
        from pilotlight.flow.budgets import workload_holds

        kept = workload_holds.keep(self.deps, self.snapshot, before, lit)
        self.unresolved |= kept.decisions
        self.got.due += kept.due
        return [hold for hold in holds if hold.id not in kept.over]

    def _of_their_owners(self, live: list[Live], before: dict[str, Kept[Hold]]) -> list[Live]:
        """The holds by whose pods are on their nodes now, where there are some and any budget asks that."""
        scopes = (budget.scope for budget in self.deps.policy.budgets)
        asked = any(isinstance(scope, BudgetScope) and not scope.pool for scope in scopes)
        if not asked or not any(one is not None and one.pods for _, one in live):
            return live
        from pilotlight.flow.budgets.hold_handover import Handover

        handover = Handover(self.deps, self.snapshot, before, self.still_ours)
        live = handover.settle_owners(live)
        self.got.away = handover.away
        return live

    def _end(self, over: Iterable[Hold], before: Mapping[str, Kept[Hold]]) -> None:
        for hold in over:
            self.still_ours()
            entry = before[hold.id]
            void = not hold.instance and hold.ended_at is None
            budget_holds.end(self.deps, entry._replace(value=hold), self.now, void=void)

    def _own(self, live: Iterable[Live], before: Mapping[str, Kept[Hold]]) -> list[Live]:
        """Holds of our own nodes, whose prices the meter knows; pods that a Workload's hold pays for wait no more."""
        own: list[Live] = []
        standing: list[Hold] = []
        for hold, one in live:
            if one is None and rules.of_workload(hold):
                standing.append(hold)
            else:
                own.append((hold, one))
        if standing:
            from pilotlight.flow.budgets import workload_holds

            self.snapshot = replace(self.snapshot, view=workload_holds.without_held(self.deps, self.snapshot, standing))
        known = [before[hold.id].value for hold, _ in own if hold.id in before]
        told = budget_holds.tell_prices(self.deps, known) if known else set()
        return [(replace(hold, told=hold.told or hold.id in told), one) for hold, one in own]

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

    def _paid_until(self, instance: str, holds: Iterable[Hold]) -> datetime | None:
        """Until when earlier holds of an instance paid for it, also where one of them is not settled yet."""
        ended = [h.ended_at for h in holds if h.instance == instance and h.ended_at is not None and not h.void]
        return max((at for at in (self._charged(instance), *ended) if at is not None), default=None)

    def _from_where_charged(self, hold: Hold, holds: Iterable[Hold]) -> Hold:
        """A hold that this look gave an instance: what another has paid of it is not paid for again."""
        paid = self._paid_until(hold.instance, holds) if hold.instance and hold.matched_at == self.now else None
        return hold if paid is None or paid <= hold.since else replace(hold, since=paid)

    def _adopted(self, strange: Iterable[Lit], holds: Iterable[Hold]) -> list[Live]:
        offerings = {o.pool: o for o in self.deps.offerings}
        out: list[Live] = []
        for one in strange:
            if one.pool in offerings:
                until = self._paid_until(one.instance, holds)
                lit_for = self.snapshot.memory.pool_class.get(one.pool, "")
                own = rules.adopt_node(one, offerings[one.pool], self.deps.policy, self.now, until, lit_for)
                out.append((own, one))
        return out

    def money(self) -> Money:
        """The balances after all holds were moved on."""
        again = min((d for d in self.got.due if d > self.now), default=None)
        return Money(
            balances=self.room.balances(),
            look_again_at=again,
            typical=budget_holds.typical_runs(self.deps, self.snapshot.memory),
            steps=budget_holds.steps_in_force(self.deps.state, self.deps.name),
            frozen=self.got.cold,
            capped=frozenset(self.got.capped),
            lit=self.lit,
            visited={name: hold.visited_since for name, hold in self.got.kept if hold.visited_since is not None},
        )
