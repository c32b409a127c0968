"""Budgets whose period was changed, or that are gone from the policy: what they counted is carried over, and told.

From shorter periods all is known that was settled since the new one began. Of a period that began before the new one
it is not known when its money went: what can have been spent since counts, at most what it had settled.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

from pilotlight.decide.money import budget_balance as moves
from pilotlight.decide.money.budget_limits import amount, budget_owner, limit, window
from pilotlight.facts.money.budgets import Meter
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.budgets.budget_room import BudgetRoom
from pilotlight.flow.budgets.restored_state import most
from pilotlight.flow.deps import Deps, HasBudgets
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.state_schema.billing_records import CAP


def carry_over_periods(deps: Deps, snapshot: Snapshot, meters: Iterable[Meter], room: BudgetRoom) -> list[Finding]:
    """Count in each new period what the old ones settled since it began, once; what people are told of it."""
    out: list[Finding] = []
    for meter in meters:
        was = snapshot.memory.periods.get(meter.budget.account)
        if was is None or was == f"{meter.budget.period}@{meter.budget.timezone}" or meter.end is None:
            continue
        old = _around(was, snapshot.now)
        known, unknown = _settled(deps, meter, was)
        guessed = min(unknown, most(deps, snapshot, meter, meter.start))
        name = room.known[meter.key.rpartition("/")[0]]
        cost = known + guessed
        name[meter.key] = budget_accounts.change(
            deps, meter.key, partial(moves.unseen, id=f"was@{was}@{old:%Y%m%dT%H%M}", cost=cost)
        )
        out.append(_told(meter, was, cost, guessed))
    return out


def vanished_budgets(
    kept_by: HasBudgets, was: Mapping[str, str], now: datetime
) -> tuple[list[Finding], dict[str, str]]:
    """Budgets that the policy has no more, and whose period goes on with something held or settled in it: what people
    are told, and their periods."""
    out: list[Finding] = []
    left: dict[str, str] = {}
    kept = {budget.account for budget in kept_by.policy.budgets}
    for account, period in was.items():
        total = _total(kept_by, account, _around(period, now)) if account not in kept else Decimal(0)
        if total:
            left[account] = period
            what = f"${total:.2f} held or spent in it that no budget counts now"
            why = f"its {period.partition('@')[0]} goes on, with {what}; where it was renamed, write id: {account}"
            out.append(Finding(subject=f"budget {account}", code="budget-gone", message=why))
    return out, left


def _around(label: str, now: datetime) -> datetime:
    """When the period around a moment began, of a budget of such a label: "day@UTC"."""
    return _window(label, now)[0]


def _window(label: str, at: datetime) -> tuple[datetime, datetime]:
    """The period around a moment of a budget of such a label."""
    period, _, zone = label.partition("@")
    return window(Budget(name="was", period=period, timezone=zone or "UTC"), at)  # type: ignore[arg-type]


def _settled(deps: Deps, meter: Meter, was: str) -> tuple[Decimal, Decimal]:
    """Amounts settled in periods that began within the new one, and in those that ran when it began."""
    known = unknown = Decimal(0)
    limit_, _, _ = meter.key.rpartition("/")
    for entry in CAP.scan(deps.state, f"{deps.name}/{limit_}/"):
        key = budget_accounts.meter_key(entry.name.removeprefix(f"{deps.name}/"))
        began = datetime.strptime(key.rpartition("/")[2], "%Y%m%dT%H%M").replace(tzinfo=UTC)
        if key == meter.key or (meter.end is not None and began >= meter.end):
            continue
        if began > meter.start:
            known += entry.value.settled
        elif _window(was, began)[1] > meter.start:
            unknown += entry.value.settled
    return known, unknown


def _total(kept_by: HasBudgets, account: str, start: datetime) -> Decimal:
    """Dollars settled and held in an account's period that began then."""
    name = f"{kept_by.name}/{account}/usd/{start:%Y%m%dT%H%M}"
    return sum((e.value.total for e in CAP.scan(kept_by.state, name)), Decimal(0))


def _told(meter: Meter, was: str, cost: Decimal, guessed: Decimal) -> Finding:
    old = was.partition("@")[0]
    why = f"it counted by the {old}: {amount(meter, cost)} of {limit(meter)} count as spent since the new period began"
    why += f", {amount(meter, guessed)} of it for what the {old} had settled, nobody knows when" if guessed else ""
    return Finding(
        subject=f"budget {meter.budget.name}", code="budget-period", message=f"{why} ({budget_owner(meter)})"
    )
