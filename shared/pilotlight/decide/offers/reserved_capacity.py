"""Capacity that is paid for: offerings of reserved pools cost nothing more, until it is full or over."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec.structs import replace

from pilotlight.decide.place.purchase import nodes_bought
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Offering
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.offers.paid_capacity import Paid, PaidIdle, UnusedMonth, UnusedPool
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import Finding
from pilotlight.units import UsdPerHour, cents, count_of


def paid_capacity(pool: PoolPolicy, state: PoolState | None) -> tuple[Paid, ...]:
    """The paid capacity of a reserved pool: its cloud's word, else the policy's."""
    if pool.capacity_type != "reserved" or state is None:
        return ()
    if state.paid or pool.paid is None:
        return state.paid
    own = pool.paid
    return (Paid(name="policy", count=own.nodes, free=max(0, own.nodes - state.desired), ends=own.until),)


def with_paid(
    offerings: Sequence[Offering], pools: Iterable[PoolState], policy: Policy, now: datetime
) -> tuple[Sequence[Offering], dict[tuple[str, str], int]]:
    """The offerings, the reserved ones with the first end of what they may use; and how many nodes that is, by pool and
    zone, and under no zone of the whole pool.

    What a cloud counts as free lags behind what was asked of it: with a pool's size it is never more than is paid for.
    """
    states = {state.name: state for state in pools}
    room: dict[tuple[str, str], int] = {}
    out: list[Offering] = []
    for offering in offerings:
        if offering.capacity_type == "reserved" and offering.pool in policy.pools:
            state = states.get(offering.pool)
            here = [p for p in paid_capacity(policy.pools[offering.pool], state) if p.lasts(now)]
            mine = [p for p in here if p.free and p.serves(offering.zone)]
            size = state.desired if state is not None else 0
            room[offering.pool, ""] = max(0, min(sum(p.free for p in here), sum(p.count for p in here) - size))
            if offering.zone:
                room[offering.pool, offering.zone] = sum(p.free for p in mine)
            offering = replace(offering, paid_until=_first_end(mine))
        out.append(offering)
    return out, room


def paid_price(offering: Offering) -> UsdPerHour | None:
    """Dollars an hour that a node of a reserved pool is paid: by the bill's commitments, else as on demand."""
    committed = offering.committed_usd_per_hour
    return committed if committed is not None else offering.on_demand_usd_per_hour


def unused_capacity(
    by_pool: Mapping[str, Offering],
    pools: Iterable[PoolState],
    policy: Policy,
    bought: Mapping[str, int],
    now: datetime,
) -> tuple[PaidIdle, ...]:
    """Paid capacity that would still run nowhere with so many nodes ``bought`` of each pool."""
    found = []
    for state, offering, here in _reserved(by_pool, pools, policy, now):
        nodes = sum(p.free for p in here) - bought.get(state.name, 0)
        if nodes > 0:
            price = paid_price(offering)
            found.append(
                PaidIdle(
                    pool=state.name,
                    instance_type=offering.instance_type,
                    nodes=nodes,
                    count=sum(p.count for p in here),
                    gpus=nodes * offering.gpus,
                    worth=None if price is None else price * nodes,
                    effective=offering.committed_usd_per_hour is not None,
                    until=_first_end(here),
                )
            )
    return tuple(found)


def more_than_paid(
    by_pool: Mapping[str, Offering], pools: Iterable[PoolState], policy: Policy, now: datetime
) -> tuple[Finding, ...]:
    """Reserved pools that are larger than what is paid for, as after its end: their cloud bills that on demand."""
    found = []
    for state, offering, here in _reserved(by_pool, pools, policy, now):
        count = sum(p.count for p in here)
        over = state.desired - count
        if over > 0:
            price = offering.on_demand_usd_per_hour
            worth = f"{cents(price * over)}/h" if price is not None else "a price that is not known"
            found.append(
                Finding(
                    subject=f"pool {state.name}",
                    code="not-paid",
                    message=f"has {count_of(state.desired, 'node')}, and {count} are paid for now: its cloud may bill "
                    f"{worth} on demand that no budget counts; renew what it runs on, or release them",
                )
            )
    return tuple(found)


def sell_paid(work: Work) -> None:
    """Sell reserved capacity until what is paid for ends, and no more of it."""
    work.offerings, work.paid = with_paid(work.offerings, work.look.pools, work.policy, work.now)


def tell_paid(work: Work) -> None:
    """Tell of pools beyond what is paid for, and of what is paid for and runs nowhere."""
    by_pool, pools, policy, now = work.by_pool, work.look.pools, work.policy, work.now
    work.findings += more_than_paid(by_pool, pools, policy, now)
    work.paid_idle = unused_capacity(by_pool, pools, policy, nodes_bought(work.buys), now)


def count_unused(was: UnusedMonth | None, idle: Iterable[PaidIdle], now: datetime) -> UnusedMonth:
    """A month's count after a look that found so much ``idle``: what was so before went on until now."""
    if was is not None and was.until >= now:
        return was
    before = was.pools if was is not None else {}
    micros = int((now - was.until).total_seconds() * 1_000_000) if was is not None else 0
    pools = {name: _gone_on(pool, Decimal(micros) / 3_600_000_000) for name, pool in before.items()}
    for one in idle:
        pools[one.pool] = replace(
            pools.get(one.pool, UnusedPool()), gpus=one.gpus, worth=one.worth, by_bill=one.effective
        )
    return UnusedMonth(until=now, pools=pools)


def _first_end(paid: Iterable[Paid]) -> datetime | None:
    return min((p.ends for p in paid if p.ends is not None), default=None)


def _gone_on(pool: UnusedPool, hours: Decimal) -> UnusedPool:
    """The pool with so many hours more of what went on; nothing goes on after that."""
    known, usd = pool.worth is not None or not pool.gpus, (pool.worth or 0) * hours
    return replace(
        pool,
        gpus=0,
        worth=None,
        gpu_hours=pool.gpu_hours + pool.gpus * hours,
        usd=pool.usd + usd,
        priced=pool.priced and known,
        by_bill=False,
        effective=pool.effective + (usd if pool.by_bill else 0),
    )


def _reserved(
    by_pool: Mapping[str, Offering], pools: Iterable[PoolState], policy: Policy, now: datetime
) -> Iterator[tuple[PoolState, Offering, Sequence[Paid]]]:
    """The reserved pools by name, each with its offering and what is paid for of it now."""
    for state in sorted(pools, key=lambda p: p.name):
        pool, offering = policy.pools.get(state.name), by_pool.get(state.name)
        if pool is not None and offering is not None and pool.capacity_type == "reserved":
            yield state, offering, [p for p in paid_capacity(pool, state) if p.lasts(now)]
