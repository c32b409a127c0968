"""The policy's pools with what their cloud, the memory and the evidence of other owners say of each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from pilotlight.decide.offers.reserved_capacity import paid_capacity
from pilotlight.facts.capacity import Offering
from pilotlight.facts.memory import Memory
from pilotlight.facts.modes import Mode
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.policy import Policy
from pilotlight.tools.glance.pool_row import PoolRow
from pilotlight.units import UsdPerHour

OURS = "pilotlight"


def pool_rows(
    policy: Policy,
    offered: Sequence[Offering],
    clouds: Iterable[PoolState],
    memory: Memory,
    flights: Iterable[InFlight],
    others: Mapping[str, str],
    *,
    mode: Mode,
    now: datetime,
) -> tuple[PoolRow, ...]:
    """A row a pool, in the policy's order. ``mode`` is the deployment's; ``others`` who else scales a pool."""
    states = {state.name: state for state in clouds}
    coming: Counter[str] = Counter()
    for flight in flights:
        coming[flight.pool] += flight.count
    by_pool: dict[str, list[Offering]] = defaultdict(list)
    for offering in offered:
        by_pool[offering.pool].append(offering)
    refusals = {b.offering: b.why for b in memory.backoffs if b.until > now}
    rows = []
    for name, pool in policy.pools.items():
        price, priced_at = _price(by_pool[name])
        state = states.get(name)
        paid = [p for p in paid_capacity(pool, state) if p.lasts(now)]
        reserved = sum(p.count for p in paid)
        rows.append(
            PoolRow(
                pool=name,
                size=state.desired if state else None,
                on_the_way=coming[name],
                standby=state.standby if state else 0,
                reserved=reserved,
                unused=sum(p.free for p in paid),
                instance_type=pool.instance_type,
                capacity_type=pool.capacity_type,
                usd_per_hour=price,
                paid=None
                if price is None or state is None
                else price * state.desired + reserved * _committed(by_pool[name]),
                priced_at=priced_at,
                mode=pool.acts_as or mode,
                most=pool.max,
                owner=others.get(name, OURS),
                last_error=_last_error(by_pool[name], refusals, state),
            )
        )
    return tuple(rows)


def _price(offered: Iterable[Offering]) -> tuple[UsdPerHour | None, datetime | None]:
    """Dollars an hour of the cheapest offering, and the day that they are of."""
    cheapest = min(offered, key=lambda offering: offering.usd_per_hour, default=None)
    return (cheapest.usd_per_hour, cheapest.priced_at) if cheapest else (None, None)


def _committed(offered: Iterable[Offering]) -> UsdPerHour:
    """Dollars an hour that a bill's commitments pay for a node, used or not; 0 where no bill tells."""
    return next((one.committed_usd_per_hour for one in offered if one.committed_usd_per_hour is not None), Decimal(0))


def _last_error(offered: Iterable[Offering], refusals: Mapping[str, str], state: PoolState | None) -> str:
    """The refusal that holds a pool's purchases back, by its offerings; else what its cloud refused late."""
    late = state.refusal.message if state and state.refusal else ""
    return next((refusals[offering.name] for offering in offered if offering.name in refusals), "") or late
