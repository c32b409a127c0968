"""Whose a node is: who holds it pays for it, from the look that sees its pods on."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec.structs import replace

from pilotlight.decide.money.budget_limits import class_of, in_scope, paid_until, part_of, stops
from pilotlight.decide.money.gpu_shares import shares
from pilotlight.decide.money.holds import Away, Lit, of_workload
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.money.budgets import Hold, Meter, Payer, Terms
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import Policy
from pilotlight.units import EPOCH


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


def pods_of(pods: Iterable[BoundPod], owner: Payer, policy: Policy) -> tuple[BoundPod, ...]:
    """The pods that an owner pays for."""
    return tuple(p for p in pods if (policy.payer(p.team), p.workload_class) == (owner.team, owner.workload_class))


def in_gangs(pods: Iterable[BoundPod]) -> Sequence[Sequence[BoundPod]]:
    """The pods by gang, each for itself that is of none; those first that were made first."""
    out: dict[str, list[BoundPod]] = {}
    for pod in sorted(pods, key=lambda pod: (pod.created_at is None, pod.created_at or EPOCH, pod.uid)):
        out.setdefault(pod.gang or pod.uid, []).append(pod)
    return tuple(out.values())


def without_room(
    pods: Sequence[BoundPod], terms: Terms, refused: Iterable[Meter], policy: Policy
) -> tuple[BoundPod, ...]:
    """The pods of those owners of a shared node that limits without room count, where another owner has pods on it and
    each of theirs may be stopped at a cap; else none."""
    scopes = [meter.budget.scope for meter in refused]
    owners = [
        owner
        for owner in terms.owners
        if any(in_scope(scope, terms.pool, owner.workload_class, owner.team) for scope in scopes)
    ]
    others = [owner for owner in terms.owners if owner not in owners and pods_of(pods, owner, policy)]
    if not others or not all(stops(class_of(owner.workload_class), policy) for owner in owners):
        return ()
    return tuple(pod for owner in owners for pod in pods_of(pods, owner, policy))


def payers_of(terms: Terms) -> tuple[Payer, ...]:
    """Who pays on these terms."""
    return terms.owners or (Payer(team=terms.team, workload_class=terms.workload_class, part=Decimal(1)),)


def as_whole(payers: Sequence[Payer]) -> tuple[Payer, ...]:
    """The payers with their parts as parts of one."""
    whole = sum((payer.part for payer in payers), Decimal(0))
    parts = tuple(replace(payer, part=payer.part / whole) for payer in payers[:-1])
    rest = 1 - sum((payer.part for payer in parts), Decimal(0))
    return (*parts, *(replace(payer, part=rest) for payer in payers[-1:]))


def without_pods(one: Lit, pods: Collection[BoundPod]) -> Lit:
    """An instance as it is once these pods have left it."""
    gone = {pod.uid for pod in pods}
    return one._replace(node=one.node and replace(one.node, pods=tuple(p for p in one.node.pods if p.uid not in gone)))


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


def visited_since(hold: Hold, pods: Sequence[BoundPod], away: Away | None, now: datetime) -> datetime | None:
    """Since when only pods that leave it for want of dollars were on a node, or none: its idling goes on meanwhile."""
    leaving = {pod.uid for pod in away.pods} if away is not None else set()
    if any(pod.uid not in leaving for pod in pods):
        return None
    return (hold.visited_since or now) if pods else hold.visited_since
