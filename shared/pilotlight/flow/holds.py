"""Budget holds in the state: reserved before a purchase, moved on while a node is lit, settled when it stops.

A hold is written before any account names it, and deleted after none does. So a crash between any two steps leaves a
hold that the next look finds, and every step can be done twice.
Without budgets nothing here reads or writes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import msgspec

from pilotlight.decide import holds as rules
from pilotlight.decide.budget import applies, balance, life, meters, opened
from pilotlight.decide.holds import TICK, Claim, Lit
from pilotlight.decide.ladder import refuses
from pilotlight.decide.runs import learned, typical
from pilotlight.errors import Denied
from pilotlight.facts.budget import NO_BUDGETS, Account, Hold, Meter, Money, Runs, Terms
from pilotlight.facts.decisions import Buy, NodeVerdict, Record
from pilotlight.facts.workload import Finding
from pilotlight.flow import accounts, ladder
from pilotlight.flow.deps import Deps
from pilotlight.flow.sight import Sight
from pilotlight.units import Seconds


def balances(deps: Deps, now: datetime) -> Money:
    """How far each budget is used now."""
    found = meters(deps.policy.budgets, now)
    holds = accounts.holds(deps) if found else []
    totals = tuple(balance(m, accounts.account(deps, m).total, holds, now, _boot_s(deps)) for m in found)
    return Money(balances=totals, typical=typical(_runs(deps)), steps=ladder.steps(deps.state, deps.name))


def reserve(deps: Deps, decision: str, index: int, nodes: Sequence[Terms], now: datetime) -> str:
    """Hold what a purchase may cost, a hold a node, before it is made: all or nothing. The refusal, or empty.

    Doing it again is doing it once: holds are named by the decision, the number of its call, and that of the node.
    """
    if not deps.policy.budgets:
        return ""
    steps = ladder.steps(deps.state, deps.name)
    for each in nodes if steps else ():
        if stopped := refuses(steps, each.pool, each.workload_class, each.team, now):
            return stopped
    fresh = [opened(_hold_id(decision, index, n), decision, terms, now) for n, terms in enumerate(nodes)]
    for hold in fresh:
        accounts.write(deps, hold)
    for meter in meters(deps.policy.budgets, now):
        own = [h for h in fresh if applies(meter, h.terms)]
        refused = accounts.claim(deps, meter, partial(rules.claim_new, meter, holds=own)).refused if own else ""
        if refused:
            give_back(deps, fresh, now)
            return refused
    return ""


def give_back(deps: Deps, holds: Iterable[Hold], now: datetime) -> None:
    """Nothing was bought for these: all they held is free again."""
    for hold in holds:
        for meter in life(deps.policy.budgets, hold, now):
            accounts.change(deps, meter, partial(rules.released, hold=hold.id))
        accounts.forget(deps, hold)


def stop(deps: Deps, hold: Hold, ended_at: datetime, now: datetime) -> None:
    """A node has stopped: its real cost is settled, the rest of its hold is free again.

    First every account holds the real cost, then the hold says that it ended, then each account settles that and holds
    it no more: whoever finds it half-way goes on, and no account can settle it twice.
    """
    touched = life(deps.policy.budgets, hold, now)
    ended_at = hold.ended_at or ended_at
    if hold.ended_at is None:
        for meter in touched:
            accounts.change(deps, meter, partial(rules.charged, meter, hold=hold, ended_at=ended_at))
        accounts.write(deps, msgspec.structs.replace(hold, ended_at=ended_at))
    for meter in touched:
        accounts.change(deps, meter, partial(rules.settled, meter, hold=hold, ended_at=ended_at))
    accounts.forget(deps, hold)


def after(deps: Deps, record: Record) -> None:
    """Settle the nodes that a decision has just given back, and free what the cloud did not sell it."""
    if not deps.policy.budgets or all(effect.outcome in ("planned", "advised") for effect in record.effects):
        return
    calls: tuple[Buy | NodeVerdict, ...] = (*record.plan.buys, *record.plan.releases)
    gone: set[str] = set()
    unsold: set[str] = set()
    for index, (call, effect) in enumerate(zip(calls, record.effects, strict=True)):
        if isinstance(call, NodeVerdict):
            gone |= {call.instance or call.node} if effect.outcome == "done" else set()
        elif effect.outcome in ("denied", "undone"):
            unsold |= {_hold_id(record.id, index, n) for n in range(effect.count, call.count)}
    if gone or unsold:
        now = deps.clock.now()
        for hold in accounts.holds(deps):
            if hold.instance in gone:
                stop(deps, hold, now, now)
            elif hold.id in unsold:
                give_back(deps, [hold], now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The look after holds were moved on, what the budgets leave, and what people should know."""

    sight: Sight
    money: Money
    findings: tuple[Finding, ...] = ()


def keep(deps: Deps, sight: Sight, still_ours: Callable[[], None] = lambda: None) -> Kept:
    """Move every hold on: settle those of stopped nodes, hold for lit ones, freeze nodes that cannot be held for.

    ``still_ours`` is asked before each: it raises once the lease is lost, for no hold may be settled by two.
    """
    if not deps.policy.budgets:
        return Kept(sight=sight, money=NO_BUDGETS)
    keeper = _Keeper(deps, sight, still_ours)
    keeper.run()
    nodes = rules.frozen_nodes(sight.view.nodes, keeper.frozen)
    view = msgspec.structs.replace(sight.view, nodes=nodes)
    return Kept(sight=replace(sight, view=view), money=keeper.money(), findings=keeper.reports())


class _Keeper:
    """One pass over all holds. ``frozen`` tells by instance what was cordoned and what not any more."""

    def __init__(self, deps: Deps, sight: Sight, still_ours: Callable[[], None]) -> None:
        self.deps, self.sight, self.now = deps, sight, sight.now
        self.still_ours = still_ours
        self.meters = meters(deps.policy.budgets, sight.now)
        self.accounts: dict[str, Account] = {}
        self.frozen: dict[str, bool] = {}
        self.findings: list[Finding] = []
        self.refused: dict[str, list[tuple[str, Claim]]] = {m.key: [] for m in self.meters}
        self.due: list[datetime] = []
        self.live: list[Hold] = []

    def run(self) -> None:
        """Stopped nodes first: they free money. Then nodes with work on them, then the others."""
        before = {hold.id: hold for hold in accounts.holds(self.deps)}
        lit = rules.lit(self.sight.view.nodes, self.sight.pools)
        found = rules.match(list(before.values()), lit, self.sight.pools, self.now)
        for hold in found.over:
            self.still_ours()
            if hold.instance:
                stop(self.deps, hold, self.now, self.now)
            else:
                give_back(self.deps, [hold], self.now)
        self.accounts = {m.key: accounts.account(self.deps, m) for m in self.meters}
        live = [*found.live, *self._adopted(found.strange)]
        for hold, one in live:
            if _frozen(hold, one):
                self._let_go(hold)
        for hold, one in sorted(live, key=_working_first):
            self.still_ours()
            self._move_on(before.get(hold.id), hold, one)

    def _adopted(self, strange: Iterable[Lit]) -> list[tuple[Hold, Lit | None]]:
        offerings = {o.pool: o for o in self.deps.offerings}
        ours = [one for one in strange if one.pool in offerings]
        return [(rules.adopted(one, offerings[one.pool], self.deps.policy, self.now), one) for one in ours]

    def _move_on(self, before: Hold | None, hold: Hold, one: Lit | None) -> None:
        own = rules.committed(hold, one.pods if one else (), self.deps.policy)
        has = rules.put_out(own, self.now) if _frozen(hold, one) else own
        wants = rules.moved_on(own, self.now)
        if before is None:
            accounts.write(self.deps, hold)
        concerned = [meter for meter in self.meters if applies(meter, hold.terms)]
        refused = [meter for meter in concerned if not self._claim(meter, has, wants, one)]
        after = msgspec.structs.replace(own if refused else wants, frozen=bool(refused))
        if not refused:
            self.due.append(after.binds_until - TICK)
        self.due += [meter.end for meter in concerned if meter.end is not None]
        self.live.append(after)
        self._cordon(hold, after, one)
        if after != before:
            accounts.write(self.deps, after)

    def _claim(self, meter: Meter, has: Hold, wants: Hold, one: Lit | None) -> bool:
        """Whether it was granted. By what was read already; the account is only written where that would change it."""
        decide = partial(rules.claim_more, meter, has=has, wants=wants, now=self.now)
        claim = decide(self.accounts[meter.key])
        if claim.account is not self.accounts[meter.key]:
            claim = accounts.claim(self.deps, meter, decide)
            self.accounts[meter.key] = claim.account
        if claim.refused:
            name = one.node.name if one and one.node else has.instance or has.id
            self.refused[meter.key].append((name, claim))
        return not claim.refused

    def _let_go(self, hold: Hold) -> None:
        """What an empty frozen node was held for is free for the others: they may then serve."""
        for meter in self.meters:
            if applies(meter, hold.terms):
                claim = accounts.claim(self.deps, meter, partial(rules.let_go, meter, hold=hold, now=self.now))
                self.accounts[meter.key] = claim.account

    def _cordon(self, before: Hold, after: Hold, one: Lit | None) -> None:
        """Frozen nodes take nothing new. The cordon comes before the record of it: repeating it is harmless."""
        node = one.node if one else None
        if node is None or self.deps.mode_of(node.pool) not in ("scale-up", "act"):
            return
        try:
            if after.frozen and node.schedulable:
                self.deps.cluster.cordon(node.name)
            elif before.frozen and not after.frozen:
                self.deps.cluster.uncordon(node.name)
            else:
                return
        except Denied as no:
            self.findings.append(Finding(subject=f"node {node.name}", code="budget-cordon", message=str(no)))
        self.frozen[one.instance if one else ""] = after.frozen

    def reports(self) -> tuple[Finding, ...]:
        """One finding for each meter that people should know of, and what went wrong."""
        told = ((m, rules.report(m, self.accounts[m.key], self.refused[m.key])) for m in self.meters)
        found = (
            Finding(subject=f"budget {m.budget.name}, {m.measure}", code="budget-hold", message=why)
            for m, why in told
            if why
        )
        return (*found, *self.findings)

    def money(self) -> Money:
        """The balances after all holds were moved on."""
        found = tuple(
            balance(m, self.accounts[m.key].total, self.live, self.now, _boot_s(self.deps)) for m in self.meters
        )
        again = min((d for d in self.due if d > self.now), default=None)
        steps = ladder.steps(self.deps.state, self.deps.name)
        return Money(balances=found, look_again_at=again, typical=typical(self._learn()), steps=steps)

    def _learn(self) -> Runs:
        """The runs seen so far, with this look's; only soft budgets ask for them."""
        known = _runs(self.deps)
        runs = learned(known, self.sight.view.nodes, self.now) if _soft(self.deps) else known
        if runs != known:
            accounts.write_runs(self.deps, runs)
        return runs


def _boot_s(deps: Deps) -> Seconds:
    return max((offering.boot_s for offering in deps.offerings), default=0.0)


def _soft(deps: Deps) -> bool:
    return not all(budget.hard for budget in deps.policy.budgets)


def _runs(deps: Deps) -> Runs:
    return accounts.runs(deps) if _soft(deps) else Runs()


def _working_first(pair: tuple[Hold, Lit | None]) -> tuple[bool, bool, datetime, str]:
    hold, one = pair
    return not (one and one.pods), _frozen(hold, one), hold.since, hold.id


def _frozen(hold: Hold, one: Lit | None) -> bool:
    """Whether a node takes nothing new and is empty, as this look shows it."""
    return hold.frozen and one is not None and one.node is not None and not (one.node.schedulable or one.pods)


def _hold_id(decision: str, index: int, n: int) -> str:
    return f"{decision}.{index}.{n}"
