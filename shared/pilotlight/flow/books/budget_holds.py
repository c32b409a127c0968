"""Budget holds in the state: reserved before a purchase, settled when the node stops. ``keeper`` moves them on.

A hold is written before any account names it, and deleted after none does. So a crash between any two steps leaves a
hold that the next look finds, and every step can be done twice.
Without budgets nothing here reads or writes.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

import msgspec

from pilotlight.decide.capacity.runs import typical
from pilotlight.decide.money import holds as rules
from pilotlight.decide.money.budget import applies, balance, life, meters, opened
from pilotlight.decide.money.ladder import refuses
from pilotlight.facts.budget import Hold, Money, Runs, Terms
from pilotlight.facts.decisions import NodeVerdict, Record
from pilotlight.flow.billing import ladder
from pilotlight.flow.books import accounts
from pilotlight.flow.deps import Deps
from pilotlight.units import Seconds


def balances(deps: Deps, now: datetime) -> Money:
    """How far each budget is used now."""
    found = meters(deps.policy.budgets, now)
    holds = accounts.holds(deps) if found else []
    totals = tuple(balance(m, accounts.account(deps, m).total, holds, now, boot_s(deps)) for m in found)
    return Money(balances=totals, typical=typical(known_runs(deps)), steps=ladder.steps(deps.state, deps.name))


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
    if not deps.policy.budgets or all(step.open for step in record.steps):
        return
    gone: set[str] = set()
    unsold: set[str] = set()
    for call, step in record.made:
        if isinstance(call, NodeVerdict):
            gone |= {call.instance or call.node} if step.state == "done" else set()
        elif step.state in ("denied", "unknown", "revoked"):
            unsold |= {_hold_id(record.id, step.n, n) for n in range(step.count, call.count)}
    if gone or unsold:
        now = deps.now()
        for hold in accounts.holds(deps):
            if hold.instance in gone:
                stop(deps, hold, now, now)
            elif hold.id in unsold:
                give_back(deps, [hold], now)


def boot_s(deps: Deps) -> Seconds:
    """The longest boot of any offering."""
    return max((offering.boot_s for offering in deps.offerings), default=0.0)


def soft(deps: Deps) -> bool:
    """Whether some budget holds typical runs only."""
    return not all(budget.hard for budget in deps.policy.budgets)


def known_runs(deps: Deps) -> Runs:
    """The runs seen so far, where a budget asks for them."""
    return accounts.runs(deps) if soft(deps) else Runs()


def _hold_id(decision: str, index: int, n: int) -> str:
    return f"{decision}.{index}.{n}"
