"""Whose a node is: who holds it pays for it, from the look that sees its pods on."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec.structs import replace

from pilotlight.decide.money.budget_limits import paid_until, part_of
from pilotlight.decide.money.gpu_shares import shares
from pilotlight.decide.money.holds import Lit, of_workload
from pilotlight.facts.money.budgets import Hold, Payer, Terms
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import Policy


def owners_of(one: Lit, gpus: int, policy: Policy) -> tuple[Payer, ...]:
    """Who pays for an instance by the GPUs that their pods hold, whom that is most first; none while it is empty.

    What nobody holds of it is paid for by those that hold the rest.
    """
    held: dict[tuple[str, str], Decimal] = {}
    for pod, share in shares(one.node, gpus) if one.node is not None else ():
        key = policy.payer(pod.team), pod.workload_class
        held[key] = held.get(key, Decimal(0)) + Decimal(share.numerator) / share.denominator
    whole = sum(held.values(), Decimal(0))
    if not whole:
        return ()
    *others, last = sorted(held, key=lambda key: (-held[key], key))
    parts = [Payer(team=team, workload_class=kind, part=held[team, kind] / whole) for team, kind in others]
    rest = 1 - sum((owner.part for owner in parts), Decimal(0))
    return (*parts, Payer(team=last[0], workload_class=last[1], part=rest))


def terms_of(terms: Terms, owners: Sequence[Payer]) -> Terms:
    """The terms with others that pay; of one alone they are that team's, as of a purchase."""
    if len(owners) == 1:
        return replace(terms, team=owners[0].team, workload_class=owners[0].workload_class, owners=())
    return replace(terms, team=owners[0].team, workload_class=owners[0].workload_class, owners=tuple(owners))


def pays_alike(budgets: Iterable[Budget], one: Terms, other: Terms) -> bool:
    """True where every budget counts as much of the one as of the other."""
    return all(part_of(budget, one) == part_of(budget, other) for budget in budgets)


def waits_for(holds: Iterable[Hold], pool: str, owner: Payer) -> Hold | None:
    """The oldest hold of a Workload of this owner for a node of the pool, which it gets now."""
    found = [h for h in holds if of_workload(h) and h.ended_at is None]
    mine = [h for h in found if (h.terms.pool, h.terms.team) == (pool, owner.team)]
    return min(mine, key=lambda hold: (hold.since, hold.id), default=None)


def begins_at(hold: Hold, now: datetime) -> datetime:
    """From when on another pays: what the cloud bills of the time before is the hold's that ends."""
    return max(now, paid_until(hold, now))
