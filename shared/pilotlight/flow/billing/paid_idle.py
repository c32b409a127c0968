"""Reserved capacity that is paid for and runs nowhere, counted for the month's report at each tick.

In a new month counting begins with its first tick: up to then nothing of it is counted.
"""

from datetime import date

from pilotlight.decide.offers.reserved_capacity import count_unused, unused_capacity
from pilotlight.facts.offers.paid_capacity import UnusedMonth
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import PAID_IDLE


def count(deps: Deps) -> None:
    """Look at the reserved pools, and count up to now."""
    by_pool = {offering.pool: offering for offering in deps.offerings if offering.capacity_type == "reserved"}
    if by_pool:
        now = deps.state.now()
        idle = unused_capacity(by_pool, deps.pools.describe(), deps.policy, {}, now)
        PAID_IDLE.change(deps.state, f"{deps.name}/{now:%Y-%m}", lambda was: count_unused(was, idle, now))


def month(state: State, cluster: str, first: date) -> UnusedMonth | None:
    """Unused capacity as it was counted in the month of a day."""
    found = PAID_IDLE.get(state, f"{cluster}/{first:%Y-%m}")
    return found.value if found else None
