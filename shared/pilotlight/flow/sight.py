"""One look at a cluster: what was read of it, of its cloud and of the state, at one moment."""

from dataclasses import dataclass
from datetime import datetime

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
        entries = [entry for _, entry in flights]
        booting = ledger.still_booting(entries, view.nodes, pools)
        live = tuple(entry for entry, left in zip(entries, booting, strict=True) if left)
        memory = msgspec.structs.replace(memory, in_flight=live)
    return Sight(view=view, pools=pools, memory=memory, flights=flights, now=now)
