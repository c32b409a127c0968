"""A GPU pod cannot be scheduled, queued work has its quota, or a node joined: buy the cheapest capacity allowed, once.

Never takes anything away. Whatever asked for the look, every admission check that can be answered is answered, and
every node that was bought is given its home.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pilotlight.facts.messages import STALE_S, NodeJoined, PodPending, QuotaReserved
from pilotlight.flow.answer import Answer
from pilotlight.state_schema.marks import EVENT, Mark

if TYPE_CHECKING:
    from pilotlight.flow.deps import Deps

Hint = PodPending | QuotaReserved | NodeJoined

LOOKED = "the cluster was looked at for old events within this minute"

COARSE = timedelta(seconds=2)
"""Events about nodes tell whole seconds, by another clock than the store's."""


def provision(deps: "Deps", event: Hint, *, dry_run: bool = False) -> Answer:
    """Answer one event. A pod whose capacity is on its way needs no look, nor does a node that a look has seen."""
    claim = f"{deps.name}/{event.identity or f'{_subject(event)}/{event.uid}/{event.at}'}"
    if not dry_run and (known := _handled(deps, claim) or _seen_to(deps) or _known(deps, event)):
        return known
    # What is known costs a cold start nothing of this.
    from pilotlight.flow.cycle import planning
    from pilotlight.flow.cycle.cycle import run_cycle

    if dry_run:
        return planning.dry_run(deps, releases=False)

    late = _late(deps, event)
    if late and (known := _handled(deps, late, LOOKED)):
        return _of_its_pod(deps, event, known)
    trigger = f"{_subject(event)} {event.identity or event.uid}".strip()
    flow = "admission" if isinstance(event, QuotaReserved) else "provision"
    answer = run_cycle(deps, flow, trigger, planning.Aim(releases=False, refused=_refused(event)))
    # A pod that is not seen yet may be seen at the next delivery, and what another will see to is not done yet. A node
    # is there before its Event is.
    if answer.outcome != "at-work" and (answer.outcome != "nothing" or isinstance(event, NodeJoined)):
        EVENT.put(deps.state, late or claim, Mark(note=answer.decision))
    return answer


def _subject(event: Hint) -> str:
    return f"node {event.name}" if isinstance(event, NodeJoined) else f"{event.namespace}/{event.name}"


def _refused(event: Hint) -> dict[str, datetime]:
    """When the scheduler said of the pod that it fits nowhere."""
    return {event.uid: event.at} if isinstance(event, PodPending) and event.uid and event.at is not None else {}


def _handled(deps: "Deps", claim: str, why: str = "this event was handled already") -> Answer | None:
    found = EVENT.get(deps.state, claim)
    if found is None:
        return None
    return Answer(decision=found.value.note, did=(), why=why, outcome="known")


def _of_its_pod(deps: "Deps", event: Hint, looked: Answer) -> Answer:
    """The answer of a look for another event, as far as it decided on this one's pod."""
    if not isinstance(event, PodPending):
        return looked
    from pilotlight.flow.records import ledger

    name, record = f"{event.namespace}/{event.name}", ledger.filed_decision(deps.state, deps.name, looked.decision)
    groups = record.plan.pods if record is not None else ()
    mine = next((one for one in groups if (event.uid in one.uids if event.uid else name in one.pods)), None)
    if record is None or mine is None:
        return Answer(decision="", did=(), why=f"{name} is decided on at the next look: {LOOKED}", outcome="known")
    verdict, why = record.became(mine)
    said = f"{name}: {verdict} {mine.where}".rstrip()
    return Answer(decision=looked.decision, did=(), why=f"{said}, {why}; {LOOKED}", outcome="known")


def _seen_to(deps: "Deps") -> Answer | None:
    """In a burst most deliveries end here."""
    from pilotlight.flow.records import lease

    return (
        Answer(decision="", did=(), why=lease.AT_WORK, outcome="at-work")
        if lease.spoken_for(deps.state, deps.name)
        else None
    )


def _known(deps: "Deps", event: Hint) -> Answer | None:
    return _joined_before(deps, event) if isinstance(event, NodeJoined) else _on_its_way(deps, event)


def _joined_before(deps: "Deps", event: NodeJoined) -> Answer | None:
    """A node that nobody waits for, or that a look has seen: in a burst one look sees many."""
    from pilotlight.flow.records import flight_log, lease

    if not deps.policy.homed and not any(flight_log.in_flight(deps.state, deps.name)):
        return Answer(decision="", did=(), why="no node is on its way, and none is kept for pods", outcome="known")
    looked = lease.last_look(deps.state, deps.name)
    if looked is None or event.at is None or looked <= event.at + COARSE:
        return None
    why = f"the cluster was looked at {looked:%H:%M:%S}, after node {event.name} joined"
    return Answer(decision="", did=(), why=why, outcome="known")


def _on_its_way(deps: "Deps", event: PodPending | QuotaReserved) -> Answer | None:
    from pilotlight.flow.records import flight_log

    now = deps.now()
    for _, entry in flight_log.in_flight(deps.state, deps.name):
        if event.uid and event.uid in entry.demands and now < entry.ready_by:
            until = f"{entry.offering}, by {entry.ready_by:%H:%M:%S}"
            why = f"capacity for {event.namespace}/{event.name} is on its way: {until}"
            return Answer(decision=entry.decision, did=(), why=why, outcome="known")
    return None


def _late(deps: "Deps", event: Hint) -> str:
    """The claim of all events that are too old to trust: together they are one hint a minute to look."""
    now = deps.now()
    if event.at is None or (now - event.at).total_seconds() <= STALE_S:
        return ""
    return f"{deps.name}/late-{now:%Y%m%d%H%M}"
