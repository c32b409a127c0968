"""Nodes' doors: closes and opens nodes as a plan says, remembers for whom they are open, and closes them behind those.

The taint on the node is the only record that it is closed: whoever looks next goes on from there, and a node that no
plan keeps closed is opened. A cluster that does not answer changes nothing.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from pilotlight.errors import BadRequest, Denied, Retry
from pilotlight.facts.decisions import Plan
from pilotlight.facts.place.closed_nodes import Opening, PlacementTaints
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import ledger
from pilotlight.ports.clouds import CALL_S
from pilotlight.units import Seconds

MOST_CLOSED = 20
"""So many nodes are closed at one look: it has more to do than that."""

GLANCE_S: Seconds = 2.0
"""A node that was opened is looked at so often, until its pods are bound."""


def turn(deps: Deps, snapshot: Snapshot, plan: Plan, keep: Callable[..., None]) -> Snapshot:
    """Open and close nodes; the look with its new memory. ``keep`` keeps the lease."""
    placed = plan.placement
    taints = deps.policy.placement == "taint" and snapshot.view.watched
    said = _awake(deps) if taints or any(p.on_silence == "hand-back" for p in deps.policy.pools.values()) else False
    close = placed.close[:MOST_CLOSED] if taints and said else ()
    for names, call in ((placed.open, deps.cluster.open), (close, deps.cluster.close)):
        for name in names:
            keep(for_s=CALL_S)
            with suppress(Denied, Retry):  # One that is gone has no door; else the next look sees it as it is.
                call(name)
    memory = replace(snapshot.memory, openings=placed.openings, strays=placed.strays)
    if memory == snapshot.memory:
        return snapshot
    was = ledger.remember(deps.state, deps.name, snapshot.was, memory)
    return replace(snapshot, memory=memory, was=was)


def _awake(deps: Deps) -> bool:
    """True where the watchmen hear of us: else one would open what we close, and one hand our pools back."""
    try:
        deps.cluster.beat()
    except (Denied, Retry):
        return False
    return True


def opened_nodes(placed: PlacementTaints) -> dict[str, Opening]:
    """The nodes that a look opened for a while."""
    return {name: o for name in placed.open if (o := placed.openings.get(name)) and o.until is not None}


def open_until(placed: PlacementTaints) -> datetime | None:
    """When the first opening is over."""
    return min((o.until for o in placed.openings.values() if o.until is not None), default=None)


def tend(deps: Deps, openings: Mapping[str, Opening], for_s: Seconds) -> bool:
    """Close each node once its pods are bound. Whether some of them still waited when the time was over.

    Where time is led by hand it is looked once.
    """
    left, ran = dict(openings), deps.clock.stopwatch()
    while left:
        left = {name: opening for name, opening in left.items() if not _shut(deps, name, opening)}
        before_s = ran()
        if left and before_s >= for_s:
            return True
        deps.pause(GLANCE_S if left else 0)
        if ran() <= before_s:
            break
    return False


def _shut(deps: Deps, name: str, opening: Opening) -> bool:
    """True where there is nothing left to wait for on a node; then it is closed."""
    try:
        if not set(opening.pods) <= {pod.uid for pod in deps.cluster.bound_pods(name)}:
            return False
        deps.cluster.close(name)
    except (BadRequest, Denied):
        return True
    except Retry:
        return False
    return True
