"""One look at a cluster: what was read of it, of its cloud and of the state, at one moment."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from pilotlight.facts.capacity import ClusterView, InFlight, PoolState
from pilotlight.facts.memory import Memory
from pilotlight.flow import ledger
from pilotlight.flow.deps import Deps


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What was read. ``flights`` are all ledger entries by key; ``memory.in_flight`` only those still booting."""

    view: ClusterView
    pools: tuple[PoolState, ...]
    memory: Memory
    flights: tuple[tuple[str, InFlight], ...]
    now: datetime


def look(deps: Deps) -> Sight:
    """One read. The time is taken first: nothing seen is older than it."""
    now = deps.clock.now()
    flights = tuple(ledger.in_flight(deps.state, deps.name))
    memory = ledger.recall(deps.state, deps.name)
    view, pools = deps.cluster.observe(), tuple(deps.pools.describe())
    if flights:
        memory = _with_flights(deps, memory, [entry for _, entry in flights], view, pools, now)
    return Sight(view=view, pools=pools, memory=memory, flights=flights, now=now)


def _with_flights(
    deps: Deps,
    memory: Memory,
    entries: list[InFlight],
    view: ClusterView,
    pools: tuple[PoolState, ...],
    now: datetime,
) -> Memory:
    """The memory with what still boots, and with gangs' capacity of which a part did not come by its deadline."""
    patience = timedelta(seconds=deps.policy.gpu_ready_deadline)
    booting = ledger.still_booting(entries, view.nodes, pools)
    late = [now > entry.requested_at + patience for entry in entries]
    live = tuple(e for e, left, over in zip(entries, booting, late, strict=True) if left and not over)
    overdue = tuple(e for e, over in zip(entries, late, strict=True) if over and e.gangs)
    return msgspec.structs.replace(memory, in_flight=live, overdue=overdue)
