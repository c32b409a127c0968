"""Recounts of budgets: after the state was restored from a backup, and where a period was changed or a budget is gone.

Of what was spent since a backup nothing is known any more. Holds are made anew for what is lit, by the cluster and the
cloud. What was bought and has gone since left no trace: the most that it can have cost is what all pools at their
largest cost in that time, within the caps, less what is lit now and held for. Hard budgets count that as spent, and no
more than they have room for: they were kept then.

What a budget counted is carried over, and told. From shorter periods all is known that was settled since the new one
began. Of a period that began before the new one it is not known when its money went: what can have been spent since
counts, at most what it had settled.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

from pilotlight.decide.money import budget_balance as moves
from pilotlight.decide.money.budget_limits import amount, budget_owner, hourly_rate, limit, window
from pilotlight.decide.money.holds import lit_instances
from pilotlight.facts.capacity import Offering
from pilotlight.facts.money.budgets import Meter
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.budgets.budget_room import BudgetRoom
from pilotlight.flow.deps import Deps, HasBudgets
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.state_schema.billing_records import CAP
from pilotlight.units import HOUR, cents, human


def count(deps: Deps, snapshot: Snapshot, meters: Iterable[Meter], room: BudgetRoom) -> list[Finding]:
    """Count what may have been spent unseen in each hard budget's period, once; what people are told of it."""
    assert snapshot.lost_since is not None
    id, said = f"lost@{snapshot.lost_since:%Y%m%dT%H%M%S}", []
    for meter in meters:
        if not meter.budget.hard or meter.end is None:
            continue
        left = max(meter.limit - room.total(meter), Decimal(0))
        cost = min(most(deps, snapshot, meter, snapshot.lost_since), left)
        if cost <= 0:
            continue
        known = room.known[budget_accounts.limit_key(meter.key)]
        known[meter.key] = budget_accounts.change(deps, meter.key, partial(moves.unseen, id=id, cost=cost))
        said.append(f"{amount(meter, cost)} of {limit(meter)} ({budget_owner(meter)})")
    return [restore_finding(snapshot, said)]


def restore_finding(snapshot: Snapshot, said: Sequence[str]) -> Finding:
    """The finding that tells people how old the state is, and what counts as spent for it."""
    assert snapshot.lost_since is not None
    age_s = (snapshot.now - snapshot.lost_since).total_seconds()
    old = f"it is {human(age_s)} old" if age_s < 400 * 24 * HOUR else "it is empty, and was not before"
    most = (
        f"what may have been spent unseen counts as spent: at most {', '.join(said)}"
        if said
        else "no hard budget lacks by it"
    )
    return Finding(subject="state", code="state-restored", message=f"{old}; what is lit is held for anew; {most}")


def most(deps: Deps, snapshot: Snapshot, meter: Meter, since: datetime) -> Decimal:
    """The most that can have been taken of a meter since a moment, beyond what is lit now."""
    since = max(since, meter.start)
    hours = Decimal(repr(max(0.0, (snapshot.now - since).total_seconds()) / HOUR))
    counted: dict[str, Decimal] = {}
    for offering in deps.offerings:
        if _counts(meter, offering):
            counted[offering.pool] = max(counted.get(offering.pool, Decimal(0)), hourly_rate(meter, offering))
    seen = Decimal(0)
    for one in lit_instances(snapshot.view.nodes, snapshot.pools):
        lived_s = max(0.0, (snapshot.now - max(since, one.earlier or one.since)).total_seconds())
        seen += counted.get(one.pool, Decimal(0)) * Decimal(repr(lived_s / HOUR))
    return max(Decimal(0), _at_once(deps.policy, deps.offerings, counted, meter) * hours - seen)


def _at_once(policy: Policy, offerings: Sequence[Offering], counted: dict[str, Decimal], meter: Meter) -> Decimal:
    """The most that a meter can be charged an hour: the dearest nodes that pools and caps let be lit at once."""
    caps, left, total = policy.caps, policy.caps.nodes, Decimal(0)
    gpus = {o.pool: max(o.gpus, 1) for o in offerings}
    for pool, each in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        most = policy.pools[pool].max if left is None else min(policy.pools[pool].max, left)
        most = most if caps.gpus is None else min(most, caps.gpus // gpus[pool])
        left = None if left is None else left - most
        total += each * most
    if meter.measure == "gpu_hours":
        return total if caps.gpus is None else min(total, Decimal(caps.gpus))
    return total if caps.usd_per_hour is None else min(total, caps.usd_per_hour)


def _counts(meter: Meter, offering: Offering) -> bool:
    """True where a meter may count a node of an offering, whoever it was bought for."""
    scope = meter.budget.scope
    return not isinstance(scope, BudgetScope) or scope.pool is None or scope.pool == offering.pool


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
        name = room.known[budget_accounts.limit_key(meter.key)]
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
        total = _total(kept_by, account, *_window(period, now)) if account not in kept else Decimal(0)
        if total:
            left[account] = period
            what = f"{cents(total)} held or spent in it that no budget counts now"
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
    for entry in CAP.scan(deps.state, f"{deps.name}/", after=f"{deps.name}/{meter.start:%Y%m%dT%H%M}"):
        key = budget_accounts.meter_key(entry.name.removeprefix(f"{deps.name}/"))
        began = datetime.strptime(budget_accounts.start_of(key), "%Y%m%dT%H%M").replace(tzinfo=UTC)
        if (
            budget_accounts.limit_key(key) != budget_accounts.limit_key(meter.key)
            or key == meter.key
            or (meter.end is not None and began >= meter.end)
        ):
            continue
        if began > meter.start:
            known += entry.value.settled
        elif _window(was, began)[1] > meter.start:
            unknown += entry.value.settled
    return known, unknown


def _total(kept_by: HasBudgets, account: str, start: datetime, end: datetime) -> Decimal:
    """Dollars settled and held in an account's period."""
    name = f"{kept_by.name}/{end:%Y%m%dT%H%M}/{account}/usd/{start:%Y%m%dT%H%M}"
    return sum((e.value.total for e in CAP.scan(kept_by.state, name)), Decimal(0))


def _told(meter: Meter, was: str, cost: Decimal, guessed: Decimal) -> Finding:
    old = was.partition("@")[0]
    why = f"it counted by the {old}: {amount(meter, cost)} of {limit(meter)} count as spent since the new period began"
    why += f", {amount(meter, guessed)} of it for what the {old} had settled, nobody knows when" if guessed else ""
    return Finding(
        subject=f"budget {meter.budget.name}", code="budget-period", message=f"{why} ({budget_owner(meter)})"
    )
