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
from pilotlight.facts.labels import BACK_IN_QUEUE, OUT_OF_QUEUE
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
        """Refuse it, or take it out of its queue, and say which. Raises what the port raises."""
        of, now = answer.of, self.snapshot.now
        return _refuse(self.deps, self.cluster, answer, self._needed(of, _known(self.deps, of)), now)

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
    return _refuse(deps, cluster, CheckAnswer(of=of, state="Retry", message=why), _known(deps, of), now)


def _refuse(deps: Deps, cluster: AdmittingCluster, answer: CheckAnswer, known: Refusals, now: datetime) -> str:
    """Counted before it is told, with what its owners are to hear: a crash evicts it once less, and loses no word."""
    of, times = answer.of, (*recent(known, now), now)
    parks = _parks(cluster, of, len(times))
    noted = msgspec.structs.replace(known, times=times, untold=now if parks else None)
    REFUSED.put(deps.state, _name(deps, of), noted)
    if parks and _parked(cluster, of, why := f"{answer.message}: {AGAIN}"):
        _tell(deps, cluster, of, why, noted)
        return f"took Workload {_about(of)} out of its queue: {answer.message}"
    cluster.answer_check(answer)
    return f"answered {answer.state} for Workload {_about(of)}: {answer.message}"


def _parks(cluster: AdmittingCluster, of: Queued, evictions: int) -> bool:
    """True where it is the last eviction of the hour, or nothing passes it in its queue."""
    try:
        return evictions >= MOST_EVICTIONS or bool(of.queue and cluster.lets_nothing_pass(of.queue))
    except Denied as no:
        return _stays(of, no)


def _parked(cluster: AdmittingCluster, of: Queued, why: str) -> bool:
    """Take it out of its queue. Without the rights to that it is evicted once more: better that than a queue that
    stands still.
    """
    try:
        cluster.park(of, why)
    except Denied as no:
        return _stays(of, no)
    return True


def _stays(of: Queued, no: Denied) -> bool:
    _log.warning("stays in its queue", extra={"data": {"workload": _about(of), "why": str(no)}})
    return False


def _tell(deps: Deps, cluster: AdmittingCluster, work: QueuedWork, why: str, known: Refusals) -> None:
    """Its owners are told why it is out of its queue: again after a crash, for the Event's name is the refusal's."""
    try:
        cluster.tell_of_work(work, OUT_OF_QUEUE, why, str(known.untold))
    except Denied as no:
        _log.warning("not told", extra={"data": {"workload": _about(work), "why": str(no)}})
    except Retry:
        return
    REFUSED.put(deps.state, _name(deps, work), msgspec.structs.replace(known, untold=None))


def put_back(deps: Deps, cluster: AdmittingCluster, snapshot: Snapshot, plan: Plan, money: Money) -> Iterator[str]:
    """Work that there is room for now, or that a person has put back, is in its queue again; a line each."""
    if not snapshot.view.parked:
        return
    room = room_of(deps.policy, money, snapshot.pools, plan.buys, deps.offerings, snapshot.now)
    for work in snapshot.view.parked:
        known = _known(deps, work)
        times = recent(known, snapshot.now)
        if known.times and max(known.times) > snapshot.now:
            known = msgspec.structs.replace(known, times=times)
            REFUSED.put(deps.state, _name(deps, work), known)
        if known.untold is not None:
            _tell(deps, cluster, work, work.why, known)
        if not work.active and (len(times) >= MOST_EVICTIONS or not takes_room(room, known)):
            continue
        try:
            cluster.park(work, "")
            cluster.tell_of_work(work, BACK_IN_QUEUE, "its budget has room: it is in its queue again", work.version)
        except (Denied, Retry) as error:
            _log.warning("not put back", extra={"data": {"workload": _about(work), "why": str(error)}})
            continue
        if not work.active:
            yield f"put Workload {_about(work)} back in its queue"


def _about(work: QueuedWork) -> str:
    return f"{work.namespace}/{work.name}"


def _name(deps: Deps, work: QueuedWork) -> str:
    """By its name, not its uid: a controller that makes its Workload anew gives it the same."""
    return f"{deps.name}/{work.namespace}.{work.name}"


def _known(deps: Deps, work: QueuedWork) -> Refusals:
    found = REFUSED.get(deps.state, _name(deps, work))
    return found.value if found else NOTHING
