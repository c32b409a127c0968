"""A state that was restored from a backup: what may have been spent since then, of which nothing is known any more.

Holds are made anew for what is lit, by the cluster and the cloud. What was bought and has gone since the backup left no
trace: the most that it can have cost is what all pools at their largest cost in that time, within the caps, less what
is lit now and held for. Hard budgets count that as spent, and no more than they have room for: they were kept then.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial

from pilotlight.decide.money import budget_balance as moves
from pilotlight.decide.money.budget_limits import amount, budget_owner, limit
from pilotlight.decide.money.holds import lit_instances
from pilotlight.facts.capacity import Offering
from pilotlight.facts.money.budgets import Meter
from pilotlight.facts.money.money_policy import BudgetScope
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets import budget_accounts
from pilotlight.flow.budgets.budget_room import BudgetRoom
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.units import HOUR, human


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
        known = room.known[meter.key.rpartition("/")[0]]
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
            counted[offering.pool] = max(counted.get(offering.pool, Decimal(0)), _each(meter, offering))
    seen = Decimal(0)
    for one in lit_instances(snapshot.view.nodes, snapshot.pools):
        lived_s = max(0.0, (snapshot.now - max(since, one.since)).total_seconds())
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


def _each(meter: Meter, offering: Offering) -> Decimal:
    return Decimal(offering.gpus) if meter.measure == "gpu_hours" else offering.usd_per_hour


def _counts(meter: Meter, offering: Offering) -> bool:
    """True where a meter may count a node of an offering, whoever it was bought for."""
    scope = meter.budget.scope
    return not isinstance(scope, BudgetScope) or scope.pool is None or scope.pool == offering.pool
