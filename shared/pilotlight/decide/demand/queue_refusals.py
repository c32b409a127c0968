"""Queued work without money: how often it may come again, when it leaves its queue, and when there is room for it.

Kueue evicts work that is answered Retry, and gives it the quota again as soon as there is some. So an hour has a most
of evictions; what is refused beyond it waits outside its queue, and comes back when there is money for it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from pilotlight.decide.demand.queue_admission import NO_MONEY, nodes_for
from pilotlight.decide.money.budget_balance import Purse
from pilotlight.decide.money.budget_ladder import refuses
from pilotlight.decide.offers.selection import reason_never_fits
from pilotlight.decide.place.purchase import Headroom
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Buy
from pilotlight.facts.money.budgets import Money, Refusals, Terms
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand

MOST_EVICTIONS = 6
"""Of one Workload in an hour, for want of money."""
HOUR = timedelta(hours=1)


class Room(NamedTuple):
    """What a look leaves for work that has none of it yet: by caps, budgets and the steps of their ladders."""

    head: Headroom
    money: Money
    now: datetime
    offerings: Mapping[str, Offering]


def room_of(
    policy: Policy,
    money: Money,
    pools: Iterable[PoolState],
    buys: Iterable[Buy],
    offerings: Sequence[Offering],
    now: datetime,
) -> Room:
    """Room that is left beside what is lit, boots, or is bought by this look's plan."""
    by_name, by_pool = {o.name: o for o in offerings}, {o.pool: o for o in reversed(offerings)}
    head = Headroom(policy)
    for pool in pools:
        if pool.name in by_pool:
            head.add(by_pool[pool.name], pool.desired)
    head.purse = Purse(money, now, policy) if money.balances else None
    for buy in buys:
        for n in range(buy.count):
            head.add(by_name[buy.offering], 1, buy.terms[n] if n < len(buy.terms) else None)
    return Room(head, money, now, by_name)


def takes_room(room: Room, needs: Refusals) -> bool:
    """True where there is room for all the nodes that were refused, of whatever pools: they are taken of it then.

    What is not known any more has room: it is asked for again.
    """
    chosen = room.offerings.get(needs.offering)
    if chosen is None or not needs.nodes:
        return True
    by_pool = {each.pool: each for each in reversed(tuple(room.offerings.values()))} | {chosen.pool: chosen}
    head, taken = room.head.copy(), list[tuple[Offering, int, Terms]]()
    for pool, count in Counter(node.pool for node in needs.nodes).items():
        if (offering := by_pool.get(pool)) is None:
            return True
        first = next(node for node in needs.nodes if node.pool == pool)
        if refuses(room.money.steps, pool, first.workload_class, first.team, room.now):
            return False
        terms = head.purse.fit_terms(first, count) if head.purse is not None else first
        if head.room(offering, terms)[0] < count:
            return False
        head.add(offering, count, terms)
        taken.append((offering, count, terms))
    for each in taken:
        room.head.add(*each)
    return True


def recent(known: Refusals, now: datetime) -> tuple[datetime, ...]:
    """The evictions of the last hour. One that is still to come is of a clock that stepped back: it counts from now on,
    for an hour."""
    return tuple(min(at, now) for at in known.times if now - at < HOUR)


def needs_of(
    group: PodGroup, pods: Sequence[PodDemand], offerings: Iterable[Offering], policy: Policy, known: Refusals
) -> Refusals:
    """What there was no money for: nodes of the cheapest offering that money alone kept from being chosen.

    Pods that can never run there have nodes of the cheapest where they can: of a gang all are told one reason.
    """
    by_name = {offering.name: offering for offering in offerings}
    dear = [one for one in group.rejected if one.code in NO_MONEY and one.offering in by_name]
    if not dear or not pods:
        return msgspec.structs.replace(known, offering="", nodes=())
    said = min(dear, key=lambda one: (one.usd_per_useful_hour is None, one.usd_per_useful_hour or 0, one.offering))
    chosen, on = by_name[said.offering], dict[str, list[PodDemand]]()
    where = [chosen, *sorted(by_name.values(), key=lambda each: (each.usd_per_hour, each.name))]
    for pod in pods:
        able = (each.name for each in where if reason_never_fits(pod.shape, each) is None)
        on.setdefault(next(able, chosen.name), []).append(pod)
    nodes = tuple(node for name, own in on.items() for node in nodes_for(by_name[name], own, policy))
    return msgspec.structs.replace(known, offering=chosen.name, nodes=nodes)
