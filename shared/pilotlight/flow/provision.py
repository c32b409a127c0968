"""A GPU pod cannot be scheduled: ask for the cheapest capacity allowed, once. Never takes anything away."""

from pilotlight.facts.messages import PodPending
from pilotlight.flow import ledger
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.walk import dry_run as _dry_run
from pilotlight.flow.walk import walk


def provision(deps: Deps, event: PodPending, *, dry_run: bool = False) -> Answer:
    """What one pod-pending event leads to. A pod whose capacity is on its way needs no look at the cluster."""
    if dry_run:
        return _dry_run(deps, releases=False)
    for _, entry in ledger.in_flight(deps.state, deps.name):
        if event.uid and event.uid in entry.demands and deps.clock.now() < entry.ready_by:
            pod = f"{event.namespace}/{event.name}"
            why = f"capacity for {pod} is on its way: {entry.offering}, by {entry.ready_by:%H:%M:%S}"
            return Answer(decision=entry.decision, did=(), why=why)
    return walk(deps, "provision", f"{event.namespace}/{event.name} {event.identity or event.uid}", releases=False)
