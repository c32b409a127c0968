"""Carries interruptions on: at each look what is due of every one is done, written, and told once it is over.

A stop at the end of a hard cap whose steps cannot be worked out is done plainly, so that the cap is kept all the same.
It was begun only where the classes of all pods allow it. Its pods are evicted from its beginning on, asked by their
disruption budgets; at its deadline they are deleted, and the node is given back once it is empty.

Nodes that show that they go, and of which no notice came, begin here too: their marks are the notice.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta

from pilotlight.errors import Busy, Denied, PilotlightError, Retry
from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.interruption.interruption import NOTICE_S, PODS_LEAVE, STILL_THERE, STOP_KINDS, Interruption
from pilotlight.facts.interruption.notice_kinds import SHOWN
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.cycle.cycle import run_cycle
from pilotlight.flow.cycle.planning import Aim
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import brake_records, node_marks

AHEAD = timedelta(seconds=60)
"""Pods that their disruption budgets keep are deleted so long before the deadline."""


def carry_on(deps: Deps) -> list[Answer]:
    """Do what is due of every interruption. One that fails keeps none of the others; the first error is raised last."""
    failed = _begun(deps)
    if deps.set_apart("rescue"):
        stop_plainly(deps)
    left = interruption_records.open_interruptions(deps)
    if not left:
        if failed is not None:
            raise failed
        return []
    from pilotlight.flow.interruption.drain_one import NodeDrain, do_due_steps
    from pilotlight.flow.interruption.verify_notice import Questions

    view, questions = deps.observe(), Questions(deps)
    runs = [NodeDrain(deps, kept.found, view, questions) for kept in left]
    answers: list[Answer] = []
    for kept, run in zip(left, runs, strict=True):
        run.beside = runs
        try:
            answers.append(do_due_steps(deps, kept, run))
        except (Retry, Denied) as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return answers


def _begun(deps: Deps) -> PilotlightError | None:
    """Begin what is due, each kind whatever becomes of the others; the first error that kept one from it."""
    failed: PilotlightError | None = None
    for begin in _beginnings(deps):
        try:
            begin(deps)
        except (Retry, Denied) as error:
            failed = failed or error
    return failed


def _beginnings(deps: Deps) -> Iterator[Callable[[Deps], None]]:
    """Beginnings that the policy may ask for: rescues where a block of capacity ends soon, moves off nodes that are too
    old, whose GPUs are not well, or whose off-hours begin, and preemptions. They are imported where a case arises."""
    may = {move for rules in deps.policy.classes.values() for move in rules.may_move}
    due = {
        "begin_before_block_ends": any(pool.capacity_type == "reserved" for pool in deps.policy.pools.values()),
        "begin_off_old": "max-age" in may,
        "begin_off_sick": "sick-gpu" in may,
        "begin_off_hours": "off-hours" in may,
    }
    for begin, is_due in due.items():
        if is_due:
            from pilotlight.flow.interruption import own_moves

            yield getattr(own_moves, begin)
    if "preempt" in may:
        from pilotlight.flow.interruption.preempting import begin_preempting

        yield begin_preempting


def look_with_drains(deps: Deps) -> Callable[[Snapshot], Snapshot] | None:
    """The change to a reconcile's look while nodes are on their way out: the room that was asked for their pods is
    kept until they come. None where no interruption is at work.
    """
    left = interruption_records.open_interruptions(deps)
    if not left:
        return None
    from pilotlight.flow.interruption.drain_one import NodeDrain

    drains = [NodeDrain(deps, kept.found, ClusterView()) for kept in left]
    rescues = [one for one in drains if one.holds_room]

    def see(snapshot: Snapshot) -> Snapshot:
        for one in rescues:
            snapshot = one.see(snapshot, move=True)
        return snapshot

    return see if rescues else None


def go_on(deps: Deps, *, dry_run: bool = False) -> Answer:
    """A tick for rescues: what is due of every one, in one answer."""
    answers = [] if dry_run else carry_on(deps)
    return Answer(
        decision=next((a.decision for a in answers if a.decision), ""),
        did=tuple(line for a in answers for line in a.did),
        why="; ".join(a.why for a in answers) or "no interruption is at work",
        look_again_at=min((a.look_again_at for a in answers if a.look_again_at), default=None),
    )


def stop_plainly(deps: Deps) -> None:
    """Carry on the stops at a cap that are set apart. A refusal is met again at the next look."""
    names = deps.set_apart("rescue")
    stops = [
        one for one in interruption_records.every(deps.state, deps.name) if one.instance in names and not one.is_over
    ]
    for found in stops:
        acts = deps.mode_of(found.pool) == "act" and not brake_records.pause_reason(deps.state, deps.name, found.pool)
        node = deps.observe().node_of(found.instance, found.node) if found.kind in STOP_KINDS and acts else None
        if node is not None:
            _stop(deps, found, node)


def _stop(deps: Deps, found: Interruption, node: Node) -> None:
    now, deadline = deps.now(), found.deadline
    try:
        node_marks.hold(deps, node.name, "rescue", f"{found.kind} of {found.instance}")
        left = [
            pod
            for pod in deps.cluster.bound_pods(deps.known_as(node.name))
            if pod.gpu is not None and not pod.daemonset
        ]
        for pod in left:
            try:
                deps.cluster.evict(pod.namespace, pod.name, pod.uid)
            except Busy:
                if deadline is not None and now >= deadline - AHEAD:
                    deps.cluster.delete(pod.namespace, pod.name, pod.uid, pod.grace_s)
    except (Retry, Denied):
        return
    if not left:
        verdict = NodeVerdict(
            node=node.name,
            pool=node.pool,
            instance=node.instance or node.name,
            verdict="release",
            why=f"{found.kind}: its steps cannot be worked out, and nothing is left on it",
            usd_per_hour=next((o.usd_per_hour for o in deps.offerings if o.pool == node.pool), None),
            forced=True,
        )
        run_cycle(deps, "interrupt", f"{found.kind} {found.instance}", Aim(releases=False, gives=(verdict,)))


See = Callable[[Snapshot], Snapshot]


class ShownNotices:
    """Notes such nodes while a cycle looks (``see``), and begins their rescues after it (``begin_drains``).
    ``looked``: a look was done."""

    def __init__(self, deps: Deps, then: See | None) -> None:
        self._deps, self._then = deps, then
        self._nodes: dict[str, Node] = {}
        self.looked = False

    def see(self, snapshot: Snapshot) -> Snapshot:
        """The look as it is, or as who looks besides sees it."""
        self.looked = True
        for node in snapshot.view.nodes:
            if (node.conditions or node.taints) and not SHOWN.keys().isdisjoint(
                (*node.conditions, *[taint.key for taint in node.taints])
            ):
                self._nodes[node.name] = node
        return self._then(snapshot) if self._then is not None else snapshot

    def begin_drains(self) -> None:
        """Begin what no notice began. One that fails keeps none of the others; the first error is raised last."""
        if not self._nodes:
            return
        from pilotlight.decide.interruption.notices import notice_of
        from pilotlight.flow.interruption.interrupt import interrupt, news

        failed: Retry | Denied | None = None
        for node in self._nodes.values():
            notice = notice_of(node, self._deps.name, interruption_records.moment(self._deps))
            try:
                known = interruption_records.find(self._deps, node.instance or node.name)
                if notice is None or (known is not None and _dealt_with(known.found.of_node, node, notice)):
                    continue
                if known is None or news(known.found, notice):
                    interrupt(self._deps, notice)
            except (Retry, Denied) as error:
                failed = failed or error
        if failed is not None:
            raise failed


def _dealt_with(known: Interruption, node: Node, notice: InterruptionNotice) -> bool:
    """True where a mark adds nothing to what is known of its node: it is shown until the node is gone.

    A mark proves what is begun of it: what was disproved, or left the node there, was of something else.
    """
    if known.kind in ("rebalance", *PODS_LEAVE):
        return False
    if known.is_over:
        return known.outcome not in STILL_THERE and known.received_at >= node.created_at
    if known.truth == "verified" and known.kind in (notice.kind, *_ORDERS):
        return True  # A mark says that a node goes, and not when.
    return notice.deadline is None  # After the fact: a rescue that is at work may still save what is on it.


_ORDERS = tuple(kind for kind in NOTICE_S if kind != "scheduled-change")
"""What nothing is announced before: no other word of an end says more."""
