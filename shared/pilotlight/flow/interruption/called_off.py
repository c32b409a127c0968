"""Preemptions that are called off: the one that waits was served otherwise, or the one that runs may not leave."""

from collections.abc import Sequence
from datetime import datetime

from pilotlight.decide.interruption.give_way import is_consenting
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import flight_log


def called_off(deps: Deps, found: Interruption, node: Node | None, view: ClusterView, now: datetime) -> str:
    """Why a pod does not give way any more; empty where it does, or has left."""
    if node is None:
        return "its node is gone"
    if deps.mode_of(found.pool) != "act":
        return f"pool {found.pool} does not act"
    stays = [pod for pod in node.gpu_pods if pod.uid in found.leaving]
    if not stays:
        return ""
    if found.until is None or now >= found.until:
        return "it has not left within half an hour"
    return "" if found.evicted else _needless(deps, found, stays, view)


def _needless(deps: Deps, found: Interruption, stays: Sequence[BoundPod], view: ClusterView) -> str:
    """Why nobody is evicted: who runs may not leave, or who waits is served."""
    if not all(is_consenting(pod, deps.policy) for pod in stays):
        return next((pod.blocks for pod in stays if pod.blocks), "") or "its class does not consent any more"
    waits = found.preempts
    if waits is None or all(pod.uid != waits.uid for pod in view.pending):
        return f"{waits.pod if waits else 'the other pod'} waits no more"
    if any(waits.uid in flight.demands for _, flight in flight_log.in_flight(deps.state, deps.name)):
        return f"a node comes for {waits.pod}"
    return ""
