"""A cloud takes an instance back, may do so, or has done so: one owner acts, and each interruption is accounted for.

A group that terminates what we gave back waits for the answer of our hook: it gets it, and nobody is told again. Our
own mark on the node, its cloud's word that it goes, and a node without GPU pods make that notice true.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

from pilotlight.errors import Conflict, Denied, Reject, Retry, Unavailable
from pilotlight.facts.interruption.interruption import (
    AT_LEISURE,
    NOTICE_S,
    PODS_LEAVE,
    SOONER,
    STAYS,
    STILL_THERE,
    Confirmed,
    Interruption,
)
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.budgets.interruption_records import Versioned
from pilotlight.ports.state import ABSENT
from pilotlight.units import UsdPerHour

if TYPE_CHECKING:
    from pilotlight.facts.capacity import ClusterView, Node
    from pilotlight.flow.deps import Deps

ANOTHER = timedelta(minutes=10)
"""A notice that is so much younger is not the same one again. A cloud tells the end of an instance within that."""

STANDS = {"": "goes on", "unknown": "no node is known by this instance"}
"""How an interruption that is heard again stands, by its outcome; others are said as they are."""


def interrupt(deps: "Deps", notice: InterruptionNotice, *, dry_run: bool = False) -> Answer:
    """Answer one notice now; what is left is kept for the next look. A second notice decides nothing anew.

    With the store down the work is saved all the same (cordon, checkpoints, evictions that are due), nothing is bought
    or given back, and ``Unavailable`` is raised, so that the notice comes again.
    """
    now = interruption_records.moment(deps)
    try:
        begun = _begun(deps, notice, now, dry_run)
    except Conflict:
        return Answer(decision="", did=(), why="another delivery of this notice is at work")
    except (Retry, Reject, Denied) as error:
        if not dry_run:
            _without_store(deps, notice, now)
        if isinstance(error, Reject):  # The notice is not to blame: it was read before.
            raise Unavailable(str(error)) from error
        raise
    return begun if isinstance(begun, Answer) else _advance(deps, *begun)


def _begun(
    deps: "Deps", notice: InterruptionNotice, now: datetime, dry_run: bool
) -> "Answer | tuple[Versioned, ClusterView]":
    """The record that a notice begins, with the look that it is of; the answer where it begins none."""
    view = deps.observe() if notice.kind == "lifecycle" else None
    if view is not None and not dry_run and (own := _of_our_own(deps, notice, view)) is not None:
        return own
    known = interruption_records.find(deps, notice.instance)
    if known is not None and not news(known.found, notice):
        return _again(deps, known, dry_run)
    view = view or deps.observe()
    before = known.found.of_node if known and not known.found.is_over else None
    found = _opened(deps, view, notice, before, now)
    if before and found.truth == "disproved":
        return _aside(before, found)
    if dry_run:
        return _would(deps, found, view)
    return _written(deps, notice, Versioned(found, known.version if known else ABSENT), view)


def _written(
    deps: "Deps", notice: InterruptionNotice, found: Versioned, view: "ClusterView"
) -> "Answer | tuple[Versioned, ClusterView]":
    """The record in the state. It is withdrawn where another delivery began it and ended it while this one stood still
    before its write."""
    kept = interruption_records.write(deps, found)
    over = interruption_records.last_filed(deps, notice.instance) if found.version == ABSENT else None
    if over is None or news(over, notice):
        return kept, view
    interruption_records.withdraw(deps, kept)
    return _again(deps, Versioned(over, ABSENT), dry_run=False)


def news(known: Interruption, notice: InterruptionNotice) -> bool:
    """True where a notice says more than what is known: a probability becomes an order, an order an earlier deadline.

    What happened well after the last one ended is another interruption: groups give a new machine an old one's name.
    """
    known = known.of_node
    if known.kind in (*AT_LEISURE, *PODS_LEAVE):  # Ours, and of no end: whatever a cloud says then is more.
        return known.outcome in ("", *STILL_THERE)
    if known.is_over:
        same = (notice.kind, notice.at) == (known.kind, known.said_at)
        if same or known.outcome == "disproved":  # After a false one there may come a true one.
            return not same
        if notice.at is not None and notice.at - (known.ended_at or known.received_at) > ANOTHER:
            return True
        ends = known.kind != "rebalance" and notice.action not in STAYS
        return known.outcome in STILL_THERE and (ends or _RANK.get(notice.kind, 2) > _RANK.get(known.kind, 2))
    return _RANK.get(notice.kind, 2) > _RANK.get(known.kind, 2) or _sooner(known, notice)


def _sooner(known: Interruption, notice: InterruptionNotice) -> bool:
    """An earlier end than the one that is known: which of the two is true is yet to be seen.

    A stop of our own ends when we say, and is not moved.
    """
    if notice.deadline is None or known.deadline is None or known.kind not in NOTICE_S:
        return False
    return notice.kind in NOTICE_S and known.deadline - notice.deadline > SOONER


_RANK = {"rebalance": 0, "scheduled-change": 1}


def _of_our_own(deps: "Deps", notice: InterruptionNotice, view: "ClusterView") -> Answer | None:
    with suppress(Denied):  # Its cloud does not let us answer: then it is told like any other.
        return answer_own_release(deps, notice, view)
    return None


def _again(deps: "Deps", known: Versioned, dry_run: bool) -> Answer:
    if known.found.is_over or dry_run:
        stands = STANDS.get(known.found.outcome, known.found.outcome)
        why = f"heard before, at {known.found.received_at:%H:%M:%S}: {stands}"
        return Answer(decision=known.found.decision, did=(), why=why)
    return _advance(deps, known, deps.observe())


def _aside(known: Interruption, false: Interruption) -> Answer:
    """An untrue notice beside one that is being dealt with: it changes nothing of that."""
    why = f"{false.kind} of {false.instance} is not true: {false.proof}; {known.kind} goes on"
    return Answer(decision=known.decision, did=(), why=why)


def _advance(deps: "Deps", kept: Versioned, view: "ClusterView") -> Answer:
    from pilotlight.flow.interruption.drain_one import advance

    return advance(deps, kept, view)


def _opened(
    deps: "Deps", view: "ClusterView", notice: InterruptionNotice, known: Interruption | None, now: datetime
) -> Interruption:
    """The record of a notice, with the owner and, where nothing is to be done, how it ends."""
    # A notice that was dealt with costs a cold start nothing of this.
    from pilotlight.decide.interruption.drain_plan import CORDON_S, begin_of, deadline_of
    from pilotlight.decide.interruption.notices import owner_of
    from pilotlight.flow.observe import known_instances

    node = view.node_of(notice.instance)
    seen = known_instances.find_instance(deps, notice.instance) if node is None else None
    if node is None and seen is None:
        seen = known_instances.find_booting(deps, notice.instance, now)
    pool = node.pool if node else seen.pool if seen else ""
    ours, why = owner_of(deps.policy, pool, node)
    deadline = deadline_of(notice, now)
    late = notice.kind not in NOTICE_S and notice.kind != "rebalance"
    found = Interruption(
        cluster=deps.name,
        instance=notice.instance,
        kind=notice.kind,
        cloud=notice.cloud,
        received_at=now,
        said_at=notice.at,
        begin=begin_of(deadline, now),
        deadline=deadline,
        named=notice.deadline is not None,
        until=now + timedelta(seconds=CORDON_S) if not (deadline or late) else None,
        pool=pool,
        node=node.name if node else seen.node if seen else "",
        ours=ours,
        why=why,
        priced=any(offering.pool == pool for offering in deps.offerings),
        outcome="" if ours else "not ours" if pool else "unknown",
        asked=known.asked if known else {},
        evicted=known.evicted if known else {},
        replaced=known.replaced if known and known.kind not in PODS_LEAVE else False,
        decision=known.decision if known else "",
        cordoned=known.cordoned if known else False,
        confirmed=_confirmed(known, deadline),
    )
    if ours:
        found = _judged(found, node, now, deps.pools.cloud)
    return _told(deps, found, notice, view, node, now)


def _confirmed(known: Interruption | None, deadline: datetime | None) -> Confirmed | None:
    """The end that was verified, where a notice now names an earlier one."""
    if known is None or deadline is None or known.deadline is None or known.kind not in NOTICE_S:
        return None
    verified = Confirmed(deadline=known.deadline, asked=known.asked) if known.truth == "verified" else known.confirmed
    return verified if verified and deadline < verified.deadline else None


def _judged(found: Interruption, node: "Node | None", now: datetime, whose: str) -> Interruption:
    """With what is known of its truth without asking anybody; over where it cannot be true."""
    from pilotlight.decide.interruption.verify_notice import impossible, judge

    if node is None:
        wrong = impossible(found, None, now, whose)
        truth, proof = ("disproved", wrong) if wrong else ("unverified", "")
    else:
        truth, proof, _ = judge(found, node, None, now, whose)
    return msgspec.structs.replace(found, truth=truth, proof=proof, outcome="disproved" if truth == "disproved" else "")


def _told(
    deps: "Deps",
    found: Interruption,
    notice: InterruptionNotice,
    view: "ClusterView",
    node: "Node | None",
    now: datetime,
) -> Interruption:
    """With what is at risk, whether it is acted on where that is a question, and the alert."""
    from pilotlight.decide.interruption.drain_plan import unsaved_work, worth_moving

    offering = next((o for o in deps.offerings if o.pool == found.pool), None)
    price: UsdPerHour = offering.usd_per_hour if offering else Decimal(0)
    pods = node.gpu_pods if node else ()
    if node is not None:
        lost = {pod.uid: unsaved_work(pod, node, price, found.deadline or now) for pod in pods}
        found = msgspec.structs.replace(found, lost=lost)
    if found.outcome == "disproved":
        found = msgspec.structs.replace(found, lost={}, ended_at=now)
        return msgspec.structs.replace(found, messages=(interruption_records.untrue(found, now),))
    if found.ours and found.kind == "rebalance":
        worth, figures = (
            worth_moving(node, view.nodes, price, offering.boot_s, now) if node and offering else (False, "")
        )
        found = msgspec.structs.replace(found, why=figures or "its node is gone", outcome="" if worth else "stayed")
    if found.ours and notice.action in STAYS:
        found = msgspec.structs.replace(found, why=STAYS[notice.action], outcome="stayed")
    found = msgspec.structs.replace(found, ended_at=now if found.is_over else None)
    return msgspec.structs.replace(found, messages=(interruption_records.opening(found, len(pods), price, now),))


def _would(deps: "Deps", found: Interruption, view: "ClusterView") -> Answer:
    """The answer of a dry run: the steps in their order."""
    from pilotlight.flow.interruption.drain_one import NodeDrain
    from pilotlight.flow.interruption.verify_notice import Questions

    node = view.node_of(found.instance)
    if node is not None and found.truth == "unverified":
        found = Questions(deps).verify(found, node, found.received_at)
    if found.truth == "disproved":
        return Answer(decision="", did=(), why=f"dry run: disproved: {found.proof}")
    run = NodeDrain(deps, found, view)
    steps = run.steps(node) if node and not found.is_over and (found.deadline or found.until) else ()
    lines = [f"{move.at:%H:%M:%S} {move.do} {move.subject}: {move.why}" for move in steps]
    known = f"{found.truth}, {found.proof}" if found.proof else found.why
    return Answer(decision="", did=(), why="; ".join([f"dry run: {found.outcome or known}", *lines]))


def _without_store(deps: "Deps", notice: InterruptionNotice, now: datetime) -> None:
    """Save the work with nothing but the cluster: what the policy and the node say makes it ours or not."""
    from pilotlight.decide.interruption.drain_plan import begin_of, deadline_of
    from pilotlight.decide.interruption.notices import owner_of
    from pilotlight.flow.interruption.save_work import Saving

    try:
        view = deps.observe()
        node = view.node_of(notice.instance)
        deadline = deadline_of(notice, now)
        if node is None or deadline is None or not owner_of(deps.policy, node.pool, node).ours:
            return
        if deps.mode_of(node.pool) == "act":
            received_at = notice.at or now
            found = Interruption(
                cluster=deps.name, instance=notice.instance, kind=notice.kind, cloud=notice.cloud,
                received_at=received_at, said_at=notice.at, begin=begin_of(deadline, received_at), deadline=deadline,
                named=notice.deadline is not None, pool=node.pool, node=node.name, ours=True,
            )  # fmt: skip
            found = _judged(found, node, now, deps.pools.cloud)
            if not found.is_over and notice.action not in STAYS:
                Saving(deps, found, view).save(node)
    except (Retry, Denied):
        return  # The store's silence is what is told; the notice comes again.


def answer_own_release(deps: "Deps", notice: InterruptionNotice, view: "ClusterView") -> Answer | None:
    """Answer the notice of a release of our own; None where it is of anything else. Raises what the ports do."""
    node = view.node_of(notice.instance) if notice.kind == "lifecycle" else None
    if node is None or node.gpu_pods:
        return None
    from pilotlight.flow.records import brake_records
    from pilotlight.state_schema.cluster_records import NODE_MARK

    mark = NODE_MARK.get(deps.state, f"{deps.name}/{node.name}")
    if mark is None or "release" not in mark.value.owners:
        return None
    if deps.mode_of(node.pool) != "act" or brake_records.pause_reason(deps.state, deps.name, node.pool):
        return None
    instance = node.instance or node.name
    seen = deps.pools.instance(node.pool, instance)
    if seen is None or not seen.going:
        return None
    deps.pools.release(node.pool, instance)
    now, claim = deps.now(), mark.value.owners["release"]
    why = f"{node.name} was given back by ourselves"
    found = Interruption(
        cluster=deps.name, instance=notice.instance, kind=notice.kind, cloud=notice.cloud, received_at=now,
        said_at=notice.at, begin=now, pool=node.pool, node=node.name, ours=True, why=why, decision=claim.by,
        outcome="released", ended_at=now,
    )  # fmt: skip
    interruption_records.close(deps, Versioned(found, ABSENT))  # A second notice finds it, and says nothing new.
    return Answer(decision=claim.by, did=(f"let {instance} go",), why=why)
