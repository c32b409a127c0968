"""A GPU pod cannot be scheduled, or queued work has its quota: ask for the cheapest capacity allowed, once.

Never takes anything away. Whatever asked for the look, every admission check that can be answered is answered.
"""

from datetime import datetime

from pilotlight.facts.messages import PodPending, QuotaReserved
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.records import lease, ledger
from pilotlight.state_schema.marks import EVENT
from pilotlight.state_schema.table import Mark


def provision(deps: Deps, event: PodPending | QuotaReserved, *, dry_run: bool = False) -> Answer:
    """Answer one event. A pod whose capacity is on its way needs no look at the cluster."""
    claim = f"{deps.name}/{event.identity or f'{event.namespace}/{event.name}/{event.uid}/{event.at}'}"
    if not dry_run and (known := _handled(deps, claim) or _seen_to(deps) or _on_its_way(deps, event)):
        return known
    if dry_run:
        from pilotlight.flow.cycle import preview

        return preview.dry_run(deps, releases=False)
    # What is known costs a cold start nothing of this.
    from pilotlight.flow.cycle.cycle import run_cycle
    from pilotlight.flow.cycle.planning import Aim

    late = _late(deps, event)
    if late and (known := _handled(deps, late, "the cluster was looked at for old events within this minute")):
        return known
    trigger = f"{event.namespace}/{event.name} {event.identity or event.uid}".strip()
    flow = "provision" if isinstance(event, PodPending) else "admission"
    answer = run_cycle(deps, flow, trigger, Aim(releases=False, refused=_refused(event)))
    # A pod that is not seen yet may be seen at the next delivery, and what another will see to is not done yet.
    if answer.outcome not in ("nothing", "at-work"):
        EVENT.put(deps.state, late or claim, Mark(note=answer.decision))
    return answer


def _refused(event: PodPending | QuotaReserved) -> dict[str, datetime]:
    """When the scheduler said of the pod that it fits nowhere."""
    return {event.uid: event.at} if isinstance(event, PodPending) and event.uid and event.at is not None else {}


def _handled(deps: Deps, claim: str, why: str = "this event was handled already") -> Answer | None:
    found = EVENT.get(deps.state, claim)
    if found is None:
        return None
    return Answer(decision=found.value.note, did=(), why=why, outcome="known")


def _seen_to(deps: Deps) -> Answer | None:
    """In a burst most deliveries end here."""
    return (
        Answer(decision="", did=(), why=lease.AT_WORK, outcome="at-work")
        if lease.spoken_for(deps.state, deps.name)
        else None
    )


def _on_its_way(deps: Deps, event: PodPending | QuotaReserved) -> Answer | None:
    now = deps.now()
    for _, entry in ledger.in_flight(deps.state, deps.name):
        if event.uid and event.uid in entry.demands and now < entry.ready_by:
            until = f"{entry.offering}, by {entry.ready_by:%H:%M:%S}"
            why = f"capacity for {event.namespace}/{event.name} is on its way: {until}"
            return Answer(decision=entry.decision, did=(), why=why, outcome="known")
    return None


def _late(deps: Deps, event: PodPending | QuotaReserved) -> str:
    """The claim of all events that are too old to trust: together they are one hint a minute to look."""
    now = deps.now()
    if event.at is None or (now - event.at).total_seconds() <= deps.policy.max_event_age:
        return ""
    return f"{deps.name}/late-{now:%Y%m%d%H%M}"
