"""Queued work that there is no money for: its quota goes to others, and it comes again as often as an hour allows.

A refusal is ``Retry`` without a time: Kueue evicts the work at once, and the next in the queue has the quota. Kueue
gives it quota again when there is some, so the last eviction that an hour allows, and the first where nothing may pass
the head of the queue, takes it out of the queue instead. Each look asks whether there is money for it by now.
"""

import logging
from collections.abc import Iterator
from datetime import datetime

import msgspec

from pilotlight.decide.demand.queue_admission import refused_group
from pilotlight.decide.demand.queue_refusals import MOST_EVICTIONS, needs_of, recent, room_of, takes_room
from pilotlight.errors import Denied, Retry
from pilotlight.facts.decisions import Plan
from pilotlight.facts.money.budgets import Money, Refusals, Terms
from pilotlight.facts.workload import CheckAnswer, Queued, QueuedWork, Reserving
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.ports.cluster import AdmittingCluster
from pilotlight.state_schema.billing_records import REFUSED

_log = logging.getLogger("pilotlight.admission")

AGAIN = "it is out of its queue until there is room, or until a person sets spec.active: true"
NOTHING = Refusals()


class Refuser:
    """The refusals of one look."""

    def __init__(self, deps: Deps, cluster: AdmittingCluster, snapshot: Snapshot, plan: Plan) -> None:
        self.deps, self.cluster, self.snapshot, self.plan = deps, cluster, snapshot, plan
        self._needs: dict[str, tuple[str, tuple[Terms, ...]]] = {}

    def note_needs(self, of: Queued, offering: str, nodes: tuple[Terms, ...]) -> None:
        """The nodes that there is no money for."""
        self._needs[of.turn] = offering, nodes

    def refuse(self, answer: CheckAnswer) -> str:
        """Refuse it, or take it out of its queue, and say which. Counted before it is told: a crash between the two
        evicts it once less. Raises what the port raises."""
        of, now = answer.of, self.snapshot.now
        known = _known(self.deps, of)
        times = recent(known, now)
        needs = self._needed(of, msgspec.structs.replace(known, times=(*times, now)))
        REFUSED.put(self.deps.state, _name(self.deps, of), needs)
        if _parks(self.cluster, of, answer.message, len(times) + 1):
            return f"took Workload {_about(of)} out of its queue: {answer.message}"
        self.cluster.answer_check(answer)
        return f"answered {answer.state} for Workload {_about(of)}: {answer.message}"

    def _needed(self, of: Queued, known: Refusals) -> Refusals:
        if of.turn in self._needs:
            offering, nodes = self._needs[of.turn]
            return msgspec.structs.replace(known, offering=offering, nodes=nodes)
        groups = {uid: group for group in self.plan.pods for uid in group.uids}
        group = refused_group(of, groups)
        uids = {uid for each in of.sets for uid in each.uids}
        pods = [pod for pod in self.snapshot.view.pending if pod.uid in uids]
        return needs_of(group, pods, self.deps.offerings, self.deps.policy, known) if group is not None else known


def refuse_running(deps: Deps, cluster: AdmittingCluster, work: Reserving, why: str, now: datetime) -> str:
    """Refuse work that was let in, for its budget stops its pods: its Job would make others, which run wherever there
    is room. It counts as any refusal does. Raises what the port raises."""
    of = Queued(
        namespace=work.namespace,
        name=work.name,
        version=work.version,
        uid=work.uid,
        check=work.check,
        sets=(),
        turn=work.turn,
        queue=work.queue,
    )
    known = _known(deps, of)
    times = recent(known, now)
    REFUSED.put(deps.state, _name(deps, of), msgspec.structs.replace(known, times=(*times, now)))
    if _parks(cluster, of, why, len(times) + 1):
        return f"took Workload {_about(of)} out of its queue: {why}"
    cluster.answer_check(CheckAnswer(of=of, state="Retry", message=why))
    return f"answered Retry for Workload {_about(of)}: {why}"


def _parks(cluster: AdmittingCluster, of: Queued, why: str, evictions: int) -> bool:
    """Take it out of its queue, where it is the last eviction of the hour or nothing passes it there.

    Without the rights to that it is evicted once more: better that than a queue that stands still.
    """
    try:
        if evictions < MOST_EVICTIONS and not (of.queue and cluster.lets_nothing_pass(of.queue)):
            return False
        cluster.park(of, f"{why}: {AGAIN}")
    except Denied as no:
        _log.warning("stays in its queue", extra={"data": {"workload": _about(of), "why": str(no)}})
        return False
    return True


def put_back(deps: Deps, cluster: AdmittingCluster, snapshot: Snapshot, plan: Plan, money: Money) -> Iterator[str]:
    """Work that there is room for now, or that a person has put back, is in its queue again; a line each."""
    if not snapshot.view.parked:
        return
    room = room_of(deps.policy, money, snapshot.pools, plan.buys, deps.offerings, snapshot.now)
    for work in snapshot.view.parked:
        known = _known(deps, work)
        if not work.active and (len(recent(known, snapshot.now)) >= MOST_EVICTIONS or not takes_room(room, known)):
            continue
        try:
            cluster.park(work, "")
        except (Denied, Retry) as error:
            _log.warning("not put back", extra={"data": {"workload": _about(work), "why": str(error)}})
            continue
        if not work.active:
            yield f"put Workload {_about(work)} back in its queue"


def _about(work: QueuedWork) -> str:
    return f"{work.namespace}/{work.name}"


def _name(deps: Deps, work: QueuedWork) -> str:
    return f"{deps.name}/{work.uid or f'{work.namespace}.{work.name}'}"


def _known(deps: Deps, work: QueuedWork) -> Refusals:
    found = REFUSED.get(deps.state, _name(deps, work))
    return found.value if found else NOTHING
