"""One look at one interruption: every step that is due is done, each once, in the order of the plan.

Saving work (``save_work``) needs no lease and no store. Buying and giving back go through the walk, with its lease, its
budgets and its records. A replacement is asked for before the first eviction, which waits for it while it has time to.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import msgspec

from pilotlight.decide.money.economics import LATE_S, billed_cost, stop_s
from pilotlight.decide.nodes.other_autoscalers import others_at
from pilotlight.errors import Conflict, Denied, Retry
from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.interruption.drain_times import TICK_S
from pilotlight.facts.interruption.interruption import (
    AT_LEISURE,
    BACK,
    GONE,
    OFF_HOURS,
    OUR_OWN,
    PODS_LEAVE,
    PREEMPTION,
    STILL_THERE,
    STOP_KINDS,
    Interruption,
    Move,
    RescueOutcome,
)
from pilotlight.flow.answer import Answer
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.budgets.interruption_records import Versioned
from pilotlight.flow.cycle.cycle import run_cycle
from pilotlight.flow.cycle.planning import Aim
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.departing_node import without_node
from pilotlight.flow.interruption.save_work import Saving
from pilotlight.flow.interruption.verify_notice import ASK_AGAIN, Questions
from pilotlight.flow.observe.remembered_pools import see_that_it_answers
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import flight_log, node_marks


class NodeDrain(Saving):
    """One look at one interruption: saving, and what needs the lease: room elsewhere, and the instance given back.

    ``beside`` are the rescues of the same look: room is asked for once, for all that need it now. ``again`` is when to
    look again.
    """

    def __init__(self, deps: Deps, found: Interruption, view: ClusterView, questions: Questions | None = None) -> None:
        super().__init__(deps, found, view, questions)
        self.beside: Sequence[NodeDrain] = ()
        self.again: datetime | None = None

    def go(self) -> None:
        """Every step that is due."""
        node = self.view.node_of(self.found.instance, self.found.node)
        if node is not None and not self.found.node:  # It booted when its notice came.
            self._note(node=node.name)
        if self.found.kind in PODS_LEAVE and self._is_out_of_date(node):
            self._end("stayed")  # The next look judges anew.
        else:
            self._step(node)
        if self.found.messages and not (self.found.is_over or self.found.told):
            told = interruption_records.retold(self.found, None if node is None else len(node.gpu_pods), self.price)
            self._note(messages=told, told=True)

    def _is_out_of_date(self, node: Node | None) -> bool:
        """True where pods that were to leave alone do not any more: nobody acts there, or their time was over."""
        if self.found.kind == PREEMPTION:
            from pilotlight.flow.interruption.called_off import called_off

            if why := called_off(self.deps, self.found, node, self.view, self.now):
                self._note(why=f"{self.found.why}; called off: {why}")
            return bool(why)
        last, later = (self.found.deadline or self.now) + timedelta(seconds=TICK_S), self.found.later
        last = min(last, later.begin) if later is not None and later.kind not in AT_LEISURE else last
        return node is None or self.now >= last or self.deps.mode_of(self.found.pool) != "act"

    def _step(self, node: Node | None) -> None:
        if self.found.deadline is None and self.found.until is None:
            self._afterwards(node)
        elif self.deps.mode_of(self.found.pool) not in ("scale-up", "act"):
            self._advise(node)
        elif node is None and self.questions.still_boots(self.found, self.now):
            self.again = self.now + ASK_AGAIN
        elif node is None:
            self._replace(None)
            self._end("gone")
        elif not self._paused() and not self._given_away() and (node := self._believed(node)) is not None:
            self._steps(node)

    def _advise(self, node: Node | None) -> None:
        """Tell what would be bought, for a notice that may be true."""
        if node is not None and self.found.truth == "unverified":
            self.found = self.questions.verify(self.found, node, self.now)
        if self.found.truth == "disproved":
            return self._end("disproved")
        self._replace(node)
        self._end("advised")

    def _afterwards(self, node: Node | None) -> None:
        """See to a node that is said to have gone already: room is asked for once that is true."""
        if node is not None and self.found.truth == "unverified":
            self.found = self.questions.verify(self.found, node, self.now)
        if self.found.truth == "disproved":
            self._end("disproved")
        elif node is None or self.found.truth == "verified":
            self._replace(node)
            if self.found.replaced:
                self._end("after the fact")
        else:
            self.again = self.now + ASK_AGAIN

    def _believed(self, node: Node) -> Node | None:
        """The node, cordoned at once where its time has come; None where its notice turns out to be untrue."""
        early = self.now < self.found.begin and self.found.asked_cloud_at is not None
        if self.found.truth == "verified" or early:
            return node
        if any(move.do == "cordon" and move.at <= self.now for move in self.steps(node)):
            self._try(partial(self._cordon, node.name))
            node = msgspec.structs.replace(node, schedulable=not self.found.cordoned)
        self.found = self.questions.verify(self.found, node, self.now)
        if self.found.truth == "verified" and self.found.cordoned:
            begun = self.now >= self.found.begin  # Else the node was closed for an earlier end that was none.
            self._try(partial(self._cordon if begun else self._uncordon, node.name))
        if self.found.truth != "disproved":
            return node
        if self.found.cordoned:
            self._try(partial(self._uncordon, node.name))
        if self.failed is None:
            self._end("disproved")
        return None

    def _sooner(self, node: Node) -> None:
        """Once its GPU work has left a node that is stopped, the others on it have their own grace, and no more."""
        if self.found.kind in STOP_KINDS and self.found.deadline is not None and not node.gpu_pods:
            alone = self.now + timedelta(seconds=stop_s(node.others) - LATE_S)
            self._note(deadline=min(self.found.deadline, alone))

    def _steps(self, node: Node) -> None:
        """Take the steps that are due; a node that they leave empty goes at once."""
        self._sooner(node)
        self._count(node)
        due = [move for move in self.steps(node) if move.at <= self.now]
        pods = {p.uid: p for n in self.view.nodes for p in n.pods}
        for move in due:
            if move.do == "replace":
                self._replace(node)
            elif move.do in ("cordon", "checkpoint", "evict"):
                self._try(partial(self._gently, move, pods))
            elif not self.found.is_over:
                self._last(move, node)
        if self._is_left(node, due):
            self._release(node, "nothing is left on it")
        self.again = self._next_look(node)

    def _is_left(self, node: Node, due: Sequence[Move]) -> bool:
        """True where a verified order has made all pods leave."""
        ends = self.found.truth == "verified" and self.found.kind not in PODS_LEAVE
        evicts = ends and any(move.do == "evict" for move in due)
        return evicts and not self.found.is_over and self._empty(node) and self._drained(node)

    def _next_look(self, node: Node) -> datetime | None:
        """When the next step is due, the end comes, or the cloud is to be asked again; None once it is over."""
        if self.found.is_over:
            return None
        later = [move.at for move in self.steps(node) if move.at > self.now]
        later += [found for found in (self.found.deadline,) if found is not None and found > self.now]
        later += [self.now + ASK_AGAIN] if self.found.confirmed else []
        return min(later, default=None)

    def _last(self, move: Move, node: Node) -> None:
        if move.do == "uncordon" and self.found.kind in PODS_LEAVE:
            self._end("stayed")
        elif move.do == "uncordon":
            self._try(partial(self._uncordon, node.name))
            if self.failed is None:
                self._end("uncordoned")
        elif node.gpu_pods or self._drained(node):
            self._release(node, move.why)

    def _replace(self, node: Node | None) -> None:
        """Ask for the room that the pods of the node will need. Whatever the answer is, it was asked."""
        if self.found.replaced:
            return
        needy = [self, *(one for one in self.beside if one is not self and one.needs_room())]

        def see(snapshot: Snapshot) -> Snapshot:
            for one in (*needy, *self._who_hold_room()):
                snapshot = one.see(snapshot, move=True)
            return snapshot

        answer = self._walk(Aim(releases=False, see=see))
        if answer is not None and answer.outcome != "at-work":
            for one in needy:
                one._note(replaced=True, decision=answer.decision or one.found.decision)
            if self.found.kind == BACK and node is not None:
                self._back_or_stay(node)

    def _back_or_stay(self, node: Node) -> None:
        """People hear of a move back to spot once there is room for it, or some is on its way; else it ends unsaid."""
        uids = {pod.uid for pod in node.gpu_pods}
        coming = (entry for _, entry in flight_log.in_flight(self.deps.state, self.deps.name))
        if any(uids.intersection(entry.demands) for entry in coming) or all(map(self.room_on_spot, node.gpu_pods)):
            told = interruption_records.opening(self.found, len(node.gpu_pods), self.price, self.now)
            self._note(messages=(*self.found.messages, told))
        else:
            self._note(outcome="stayed", ended_at=self.now, lost={})

    def needs_room(self) -> bool:
        """True where a verified order, which nobody holds, asks for room now."""
        found = self.found
        if found.is_over or found.replaced or found.truth != "verified" or not found.deadline or self.now < found.begin:
            return False
        node = self.view.node_of(found.instance, found.node)
        acts = self.deps.mode_of(found.pool) in ("scale-up", "act")
        if node is None or not acts or self._paused():
            return False
        return any(move.do == "replace" and move.at <= self.now for move in self.steps(node))

    @property
    def holds_room(self) -> bool:
        """True where room was asked for its pods, who have not all left for it yet: it is nobody else's."""
        found, asks_for_none = self.found, (*STOP_KINDS, OFF_HOURS, *PODS_LEAVE)
        return found.replaced and not found.is_over and found.kind not in asks_for_none

    def _who_hold_room(self) -> "Sequence[NodeDrain]":
        others = self.beside or [
            NodeDrain(self.deps, kept.found, self.view) for kept in interruption_records.open_interruptions(self.deps)
        ]
        return [one for one in others if one.found.instance != self.found.instance and one.holds_room]

    def _release(self, node: Node, why: str) -> None:
        """Give the instance back, and lower its pool by one: so that no group starts another in its place."""
        if self.deps.mode_of(self.found.pool) != "act":
            return
        verdict = NodeVerdict(
            node=node.name,
            pool=node.pool,
            instance=node.instance or node.name,
            verdict="release",
            why=f"{self.found.kind}: {why}",
            usd_per_hour=self.offering.usd_per_hour if self.offering else None,
            forced=self.found.kind not in (*AT_LEISURE, OFF_HOURS),
            unless_busy=self.found.kind in STOP_KINDS and not node.gpu_pods,
            due=self.found.kind not in OUR_OWN,
            taken=self.found.kind == "spot-interruption",
            spent_usd=billed_cost(self.offering, (self.now - node.created_at).total_seconds())
            if self.offering
            else None,
        )
        answer = self._walk(Aim(releases=False, see=partial(self.see, move=False), gives=(verdict,)))
        if answer is not None and self.deps.known_as(node.name) in answer.released:
            self._note(decision=self.found.decision or answer.decision)
            self._end("released")

    def _walk(self, aim: Aim) -> Answer | None:
        try:
            answer = run_cycle(self.deps, "interrupt", f"{self.found.kind} {self.found.instance}", aim)
        except (Retry, Denied) as error:
            self.failed = self.failed or error
            return None
        self.did += answer.did
        return answer

    def see(self, snapshot: Snapshot, *, move: bool) -> Snapshot:
        """The look with the node as good as gone, or gone; its pods wait for room where they are to ``move``."""
        gone = self.found.deadline is None and self.found.until is None
        node = snapshot.view.node_of(self.found.instance, self.found.node)
        onto = self.spot_pools() if self.found.kind == BACK else ()
        return without_node(snapshot, node, gone=gone, move=move, onto=onto) if node else snapshot

    def _given_away(self) -> bool:
        """True where a move of our own is over, since the pool is another's now: its node takes pods again."""
        if self.found.kind not in OUR_OWN:
            return False
        try:
            pools = see_that_it_answers(self.deps.pools.describe(), self.found.pool)
        except (Retry, Denied) as error:
            self.failed = self.failed or error
            return True  # Nothing could be given back now: no pod is made to leave for it.
        others = others_at(self.deps.policy, self.view, pools, self.now)
        if not others.stays(self.found.pool, self.found.instance):
            return False
        self.did.append(others.left[self.found.pool])
        if self.found.cordoned:
            self._try(partial(self._uncordon, self.found.node))
        if self.failed is None:
            self._end("stayed")
        return True

    def _end(self, outcome: RescueOutcome) -> None:
        if outcome in ("released", "gone") and self.found.cordoned:
            with suppress(Retry):
                node_marks.mark_released(self.deps, self.found.node, self.found.why, by=self.found.decision)
        gone = self.found.lost if outcome not in STILL_THERE else {GONE, *self.found.evicted}
        lost = {uid: lost for uid, lost in self.found.lost.items() if uid in gone}
        self._note(outcome=outcome, ended_at=self.now, lost=lost)
        messages = interruption_records.ending(self.found, self.price, self.now)
        self._note(messages=messages)

    def answer(self, why: str = "") -> Answer:
        """The answer of this look: what was done now, and when to look again."""
        done = f"over: {self.found.outcome}".removesuffix(": unknown") if self.found.is_over else "goes on"
        told = self.found.proof if self.found.truth != "verified" else self.found.why
        return Answer(
            decision=self.found.decision,
            did=tuple(self.did),
            why=why or f"{self.found.kind} of {self.found.instance}: {done}; {told}",
            look_again_at=self.again,
        )


def advance(deps: Deps, kept: Versioned, view: ClusterView) -> Answer:
    """Do what is due of one interruption, write what came of it, and tell people once it is over.

    Raises what kept a step from being done, after the others were.
    """
    return do_due_steps(deps, kept, NodeDrain(deps, kept.found, view))


def do_due_steps(deps: Deps, kept: Versioned, run: NodeDrain) -> Answer:
    """One look's steps of a rescue, done and written; people are told once it is over."""
    if not kept.found.is_over:
        run.go()
    if run.found != kept.found:
        try:
            kept = interruption_records.write(deps, Versioned(run.found, kept.version))
        except Conflict:
            return run.answer("another look carries it on")
    if kept.found.messages:
        deps.outbox.publish(kept.found.messages)
        kept = Versioned(msgspec.structs.replace(kept.found, messages=()), kept.version)
    if kept.found.is_over:
        interruption_records.close(deps, kept)
    elif not kept.found.messages and run.found.messages:
        interruption_records.write(deps, kept)
    if run.failed is not None:
        raise run.failed
    return run.answer()
