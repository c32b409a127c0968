"""A GPU pod cannot be scheduled: ask for the cheapest capacity allowed, once. Never takes anything away."""

from pilotlight.codec.records import MARK, Mark
from pilotlight.facts.messages import PodPending
from pilotlight.flow import ledger
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.walk import AT_WORK, NOTHING, walk
from pilotlight.flow.walk import dry_run as _dry_run

CLAIM_S = 3600.0
"""An event that was handled is known for so long: its second delivery costs one read."""


def provision(deps: Deps, event: PodPending, *, dry_run: bool = False) -> Answer:
    """What one pod-pending event leads to. A pod whose capacity is on its way needs no look at the cluster."""
    if dry_run:
        return _dry_run(deps, releases=False)
    claim = f"event/{deps.name}/{_identity(deps, event)}"
    handled = deps.state.get(claim)
    if handled is not None:
        return Answer(decision=MARK.read(claim, handled.value).note, did=(), why="this event was handled already")
    pod = f"{event.namespace}/{event.name}"
    now = deps.clock.now()
    for _, entry in ledger.in_flight(deps.state, deps.name):
        if event.uid and event.uid in entry.demands and now < entry.ready_by:
            why = f"capacity for {pod} is on its way: {entry.offering}, by {entry.ready_by:%H:%M:%S}"
            return Answer(decision=entry.decision, did=(), why=why)
    answer = walk(deps, "provision", f"{pod} {event.identity or event.uid}".strip(), releases=False)
    # A pod that is not seen yet may be seen at the next delivery, and what another will see to is not done yet.
    if answer.why not in (NOTHING, AT_WORK):
        deps.state.put(claim, MARK.write(Mark(note=answer.decision)), ttl_s=CLAIM_S)
    return answer


def _identity(deps: Deps, event: PodPending) -> str:
    """What makes two deliveries one event. All events too old to trust are one a minute: a hint to look."""
    now = deps.clock.now()
    if event.at is not None and (now - event.at).total_seconds() > deps.policy.max_event_age:
        return f"late-{now:%Y%m%d%H%M}"
    return event.identity or f"{event.namespace}/{event.name}/{event.uid}/{event.at}"
