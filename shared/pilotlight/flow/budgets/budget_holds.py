"""Budget holds before a purchase: how far budgets are used, and what a purchase may cost held for it, all or nothing.

Afterwards ``renew_holds`` moves holds on and ``hold_ends`` settles them. Without budgets nothing here reads or writes.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial

import msgspec

from pilotlight.decide.demand.class_run_times import typical
from pilotlight.decide.money.budget_ladder import refuses
from pilotlight.decide.money.budget_limits import held_amount, life, meters, open_hold, refusal, unpaid
from pilotlight.errors import Conflict
from pilotlight.facts.money.budgets import Account, Balance, Hold, Meter, Money, Runs, Terms
from pilotlight.facts.money.money_policy import Budget
from pilotlight.flow.budgets import budget_accounts, ladder_steps
from pilotlight.flow.budgets.hold_ends import give_back
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.billing_records import HOLD, RUNS


def balances(deps: Deps, now: datetime) -> Money:
    """Balances of each budget, now and in windows ahead."""
    found = meters(deps.policy.budgets, now)
    totals = tuple(each for meter in found for each in balances_of(meter, budget_accounts.ahead(deps, meter)))
    return Money(balances=totals, typical=typical(known_runs(deps)), steps=ladder_steps.steps(deps.state, deps.name))


def balances_of(meter: Meter, known: dict[str, Account]) -> list[Balance]:
    """The balance of a meter, and of every later window of its limit in which something is held."""
    sums: dict[str, Decimal] = {meter.key: Decimal(0)}
    for name, account in known.items():
        key = budget_accounts.meter_key(name)
        sums[key] = sums.get(key, Decimal(0)) + account.total
    return [Balance(meter=each, total=sums[each.key]) for each in budget_accounts.windows_of(meter, sums)]


def reserve(deps: Deps, decision: str, index: int, nodes: Sequence[Terms], now: datetime) -> str:
    """Hold what a purchase may cost, a hold a node, before it is made: all or nothing. The refusal, or empty.

    Doing it again is doing it once: holds are named by the decision, the number of its call, and that of the node.
    """
    if not deps.policy.budgets:
        return ""
    steps = ladder_steps.steps(deps.state, deps.name)
    for each in nodes if steps else ():
        if stopped := refuses(steps, each.pool, each.workload_class, each.team, now):
            return stopped
    for each in nodes:
        if nobody := unpaid(deps.policy.budgets, each):
            return nobody
    fresh = [open_hold(f"{decision}.{index}.{n}", decision, terms, now) for n, terms in enumerate(nodes)]
    by_meter = _counted(deps.policy.budgets, fresh)
    written = _written(deps, fresh, by_meter)
    refused = _held(deps, f"{decision}.{index}.", written, by_meter)
    if refused:
        give_back(deps, written, now)
    return refused


def _counted(budgets: Sequence[Budget], fresh: Sequence[Hold]) -> dict[str, tuple[Meter, list[Hold]]]:
    """Which meters count which of the holds."""
    out: dict[str, tuple[Meter, list[Hold]]] = {}
    for hold in fresh:
        for meter in life(budgets, hold, max(hold.until, hold.binds_until)):
            if held_amount(meter, hold):
                out.setdefault(meter.key, (meter, []))[1].append(hold)
    return out


def _written(deps: Deps, fresh: Sequence[Hold], by_meter: dict[str, tuple[Meter, list[Hold]]]) -> list[Hold]:
    """The holds as they are in the state, each with its accounts. What an earlier attempt wrote stays as it is."""
    named: defaultdict[str, list[str]] = defaultdict(list)
    for meter, own in by_meter.values():
        names = budget_accounts.read(deps, meter).names(len(own))
        budget_accounts.make_part_known(deps, meter, names[-1])
        for hold, name in zip(own, names, strict=True):
            named[hold.id].append(name)
    out: list[Hold] = []
    for hold in fresh:
        listed = msgspec.structs.replace(hold, accounts=tuple(named[hold.id]))
        try:
            HOLD.put(deps.state, f"{deps.name}/{hold.id}", listed, if_version=ABSENT)
            out.append(listed)
        except Conflict:
            found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
            out += [found.value] if found else []
    return out


def _held(deps: Deps, prefix: str, holds: Sequence[Hold], by_meter: dict[str, tuple[Meter, list[Hold]]]) -> str:
    def alive(ids: Iterable[str]) -> bool:
        found = HOLD.scan(deps.state, f"{deps.name}/{prefix}")
        return {entry.value.id for entry in found if entry.value.ended_at is None}.issuperset(ids)

    for meter, _ in by_meter.values():
        wanted: defaultdict[str, dict[str, Decimal]] = defaultdict(dict)
        for hold in holds:
            for name in hold.accounts:
                if budget_accounts.meter_key(name) == meter.key:
                    wanted[name][hold.id] = held_amount(meter, hold)
        for name, own in wanted.items():
            if not budget_accounts.reserve(deps, meter, name, own, partial(alive, own)):
                after = budget_accounts.total(deps, meter) + sum(own.values(), Decimal(0))
                return refusal(meter, after, next(h.terms for h in holds if h.id in own))
    return ""


def soft(deps: Deps) -> bool:
    """True where some budget holds typical runs only."""
    return not all(budget.hard for budget in deps.policy.budgets)


def known_runs(deps: Deps) -> Runs:
    """The runs seen so far, where a budget asks for them."""
    found = RUNS.get(deps.state, deps.name) if soft(deps) else None
    return found.value if found else Runs()
