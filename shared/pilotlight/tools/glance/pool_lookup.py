"""The policy's pools with what their cloud, the memory and the evidence of other owners say of each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pilotlight.decide.offers.reserved_capacity import paid_capacity
from pilotlight.facts.capacity import Mode, Offering
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.policy import Policy
from pilotlight.tools.glance.pool_row import PoolRow

OURS = "pilotlight"


def pool_rows(
    policy: Policy,
    offered: Sequence[Offering],
    clouds: Iterable[PoolState],
    memory: Memory,
    flights: Iterable[InFlight],
    rivals: Mapping[str, str],
    *,
    mode: Mode,
    now: datetime,
) -> tuple[PoolRow, ...]:
    """A row a pool, in the policy's order. ``mode`` is the deployment's; ``rivals`` who else scales a pool."""
    states = {state.name: state for state in clouds}
    coming: Counter[str] = Counter()
    for flight in flights:
        coming[flight.pool] += flight.count
    errors = {b.offering: b.why for b in memory.backoffs if b.until > now}
    rows = []
    for name, pool in policy.pools.items():
        mine = [offering for offering in offered if offering.pool == name]
        cheapest = min(mine, key=lambda offering: offering.usd_per_hour, default=None)
        price = cheapest.usd_per_hour if cheapest else None
        state = states.get(name)
        paid = [p for p in paid_capacity(pool, state) if p.lasts(now)]
        late = state.refusal.message if state and state.refusal else ""
        refused = next((errors[o.name] for o in mine if o.name in errors), "")
        rows.append(
            PoolRow(
                pool=name,
                size=state.desired if state else None,
                on_the_way=coming[name],
                standby=state.standby if state else 0,
                reserved=sum(p.count for p in paid),
                unused=sum(p.free for p in paid),
                instance_type=pool.instance_type,
                capacity_type=pool.capacity_type,
                usd_per_hour=price,
                paid=None if price is None or state is None else price * state.desired,
                priced_at=cheapest.priced_at if cheapest else None,
                mode=pool.acts_as or mode,
                most=pool.max,
                owner=rivals.get(name, OURS),
                last_error=refused or late,
            )
        )
    return tuple(rows)
