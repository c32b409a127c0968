"""Gives back one named instance in safe order: closed, looked at, drained, looked at once more, ended.

Where anything is in its way it stays, and is opened again.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from pilotlight.errors import BadRequest, Denied, LastNode, PilotlightError, Retry, Unsure
from pilotlight.facts.decisions import NodeVerdict, StepCode
from pilotlight.facts.memory import Memory
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import flight_log, memory_updates, node_marks
from pilotlight.flow.records.call_steps import Overtaken, Sending, Stalled
from pilotlight.flow.records.lease import Lease
from pilotlight.ports.clouds import CALL_S, Pools, StandbyPools
from pilotlight.units import Seconds, an_hour

DRAIN_S: Seconds = 40.0
"""What emptying a node may take."""

CLOSED_FOR = timedelta(minutes=10)
"""A node that is being given back is kept closed for so long at most."""


class Occupied(Denied):
    """A GPU pod bound to the node meanwhile, or the instance became a node."""


class Gone(Denied):
    """The node left by itself meanwhile."""


class NodeRelease:
    """One node's way out, decided ``by`` a decision at a look taken ``now``. ``memory`` is what it leaves behind."""

    def __init__(
        self, deps: Deps, held: Lease, node: NodeVerdict, sending: Sending, memory: Memory, *, by: str, now: datetime
    ) -> None:
        self.deps, self.held, self.node, self.sending = deps, held, node, sending
        self.memory, self.by, self.now = memory, by, now

    def run(self) -> None:
        """Close it, read again who is bound, drain what is no GPU work, then give back that one instance.

        Raises ``Retry`` where the call's answer was lost, or another has taken over.
        """
        node, sending = self.node, self.sending
        if node.failed and node.offering:
            self.memory = memory_updates.never_ready(self.memory, node.offering, node.why, self.now)
        try:
            self._give_back()
        except Overtaken:  # Whoever took over may have settled it before this worker closed the node; what was sent it
            if node.registered and not node.forced and sending.step.state == "planned":  # sends again, under this mark.
                node_marks.lift(self.deps, node.node, "release", by=self.by)
            raise

    def _give_back(self) -> None:
        node, sending = self.node, self.sending
        try:
            self._empty()
            self.held.keep(for_s=CALL_S)
        except (Denied, Retry) as no:
            self._keep(no)
            return
        try:
            end = _end_of(self.deps.pools, node)
            end(node.pool, node.instance, gate=self._last_look)
        except Overtaken:
            raise
        except Denied as no:
            self._keep(no)
        except Retry as lost:
            if not sending.let_out:  # Nothing was sent.
                self._keep(lost)
            elif not isinstance(lost, Unsure):
                sending.note_answer(lost)
            raise
        else:
            self._released()

    def _empty(self) -> None:
        """Nothing new may bind to it, and what is no GPU work leaves. What its cloud takes is saved by other means."""
        node = self.node
        if not (node.registered or node.forced):
            self._see_that_it_is_no_node()
        elif not node.forced:
            until = self.now + CLOSED_FOR
            node_marks.hold(self.deps, node.node, "release", node.why, by=self.by, until=until)
            self._see_that_it_is_empty()
            self.deps.cluster.drain(node.node)

    def _see_that_it_is_no_node(self) -> None:
        """Raises ``Occupied``. Nodes need not have their instances' names, and each may have come since the look."""
        for node in self.deps.observe().nodes:
            if self.node.instance in (node.instance, node.name) and (node.ready or node.gpu_pods):
                raise Occupied(f"it is node {node.name} by now")

    def _last_look(self) -> None:
        """Between connecting and the request: that no GPU pod is bound now, and then that the step is still ours.

        A pod that tolerates our mark may bind at any moment: from this look to the request pass two seconds at most.
        """
        ran = self.deps.clock.stopwatch()
        self._see_that_it_is_empty()
        self.sending.gate(ran=ran)

    def _see_that_it_is_empty(self) -> None:
        """Raises ``Occupied``. An instance that was no node at the look may have become one since."""
        node = self.node
        if node.forced and not node.unless_busy:
            return
        try:
            bound = self.deps.cluster.bound_pods(node.node)
        except BadRequest as gone:
            if node.registered:
                raise Gone(f"the node left by itself: {gone}") from None
            return
        busy = [p for p in bound if p.gpu is not None and not p.daemonset]
        if busy:
            raise Occupied(f"{busy[0].namespace}/{busy[0].name} bound to it meanwhile")

    def _released(self) -> None:
        node = self.node
        if node.registered and not (node.failed or node.learned or node.forced):
            self.memory = memory_updates.note_release(self.memory, node.pool, node.break_even_s, self.now)
        self.sending.end("done")
        if node.registered:
            node_marks.mark_released(self.deps, node.node, node.why, by=self.by)
        if node.flight:
            self._one_less(f"{self.deps.name}/{node.flight}")

    def _one_less(self, name: str) -> None:
        """What went back was on its way: its entry in flight has one less."""
        entry = flight_log.flight(self.deps.state, name)
        if entry is not None and entry.count > 1:
            flight_log.write_flight(self.deps.state, name, msgspec.structs.replace(entry, count=entry.count - 1))
        elif entry is not None:
            flight_log.forget_flight(self.deps.state, name)

    def _keep(self, no: PilotlightError) -> None:
        """It stays, open again unless an earlier call for it may still land; what kept it is said."""
        node, sending = self.node, self.sending
        sending.stays = isinstance(no, Denied)
        if sending.sent_before:
            return sending.note_unsent()
        if isinstance(no, LastNode):
            self.memory = memory_updates.note_floor(self.memory, node.pool, self.now)
            note = f"{no}: {an_hour(node.usd_per_hour)} for as long as it stays"
            sending.end("denied", code="last-node", note=note, count=0)
        elif sending.step.state == "planned":
            sending.end("revoked", code=_code(no), note=str(no), count=0)
        elif sending.step.state == "sent":
            note, instance = f"{type(no).__name__}: {no}", node.instance or node.node
            self.memory = memory_updates.note_refused_release(self.memory, instance, note, self.now)
            sending.end("denied", code="refused", note=note, count=0)
        if node.registered and not node.forced:
            node_marks.lift(self.deps, node.node, "release", by=self.by)


def _end_of(pools: Pools, node: NodeVerdict) -> Callable[..., None]:
    """The call that ends a node: it is stopped to stand by, or given back."""
    return pools.stop if node.stop and isinstance(pools, StandbyPools) else pools.release


def _code(no: PilotlightError) -> StepCode:
    match no:
        case Occupied():
            return "taken"
        case Gone():
            return "gone"
        case Stalled():
            return "failed"
    return "drain"
