"""A pass over all budget holds at every look: settle what stopped, hold for what is lit, freeze the rest."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import msgspec

from pilotlight.decide.capacity.runs import learned, typical
from pilotlight.decide.money import holds as rules
from pilotlight.decide.money.budget import applies, balance, meters
from pilotlight.decide.money.holds import TICK, Claim, Lit
from pilotlight.errors import Denied
from pilotlight.facts.budget import NO_BUDGETS, Account, Hold, Meter, Money, Runs
from pilotlight.facts.workload import Finding
from pilotlight.flow import marks
from pilotlight.flow.billing import ladder
from pilotlight.flow.books import accounts
from pilotlight.flow.books.budget_holds import boot_s, give_back, known_runs, soft, stop
from pilotlight.flow.deps import Deps
from pilotlight.flow.sight import Sight


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
        self.cold: dict[str, bool] = {}

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
        if refused and one and one.node:
            empty = not one.pods
            self.cold[one.node.name] = empty and any(self._spent_up(meter, after) for meter in concerned)
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

    def _spent_up(self, meter: Meter, hold: Hold) -> bool:
        return rules.spent_up(meter, self.accounts[meter.key], hold, self.now)

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
                marks.hold(self.deps, node.name, "budget", "its budget has no room for more on it")
            elif before.frozen and not after.frozen:
                marks.lift(self.deps, node.name, "budget")
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
            balance(m, self.accounts[m.key].total, self.live, self.now, boot_s(self.deps)) for m in self.meters
        )
        again = min((d for d in self.due if d > self.now), default=None)
        steps = ladder.steps(self.deps.state, self.deps.name)
        return Money(
            balances=found,
            look_again_at=again,
            typical=typical(self._learn()),
            steps=steps,
            frozen=self.cold,
        )

    def _learn(self) -> Runs:
        """The runs seen so far, with this look's; only soft budgets ask for them."""
        known = known_runs(self.deps)
        runs = learned(known, self.sight.view.nodes, self.now) if soft(self.deps) else known
        if runs != known:
            accounts.write_runs(self.deps, runs)
        return runs


def _working_first(pair: tuple[Hold, Lit | None]) -> tuple[bool, bool, datetime, str]:
    hold, one = pair
    return not (one and one.pods), _frozen(hold, one), hold.since, hold.id


def _frozen(hold: Hold, one: Lit | None) -> bool:
    """Whether a node takes nothing new and is empty, as this look shows it."""
    return hold.frozen and one is not None and one.node is not None and not (one.node.schedulable or one.pods)
