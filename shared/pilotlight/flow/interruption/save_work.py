"""Saving work from a node that goes: closing it, asking for checkpoints, evicting, draining.

It needs no lease and no store: each step may be repeated and harms nobody. Only the refusal of Kueue's work counts in
the store, and no step waits for it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

import msgspec

from pilotlight.decide.interruption.drain_plan import (
    assumed_saved,
    drain_moves,
    groups,
    room_for,
    unsaved_work,
)
from pilotlight.errors import BadRequest, Busy, Denied, PilotlightError, Retry
from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Offering
from pilotlight.facts.interruption.drain_times import MARGIN_S
from pilotlight.facts.interruption.interruption import (
    AT_LEISURE,
    BACK,
    GONE,
    PODS_LEAVE,
    PREEMPTION,
    STOP_KINDS,
    UNFUNDED,
    Interruption,
    Move,
)
from pilotlight.facts.labels import CHECKPOINT_NOW, MOVED
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.verify_notice import Questions
from pilotlight.flow.records import brake_records, node_marks
from pilotlight.ports.cluster import AdmittingCluster
from pilotlight.units import Seconds, UsdPerHour, human

_FORCED = (*STOP_KINDS, UNFUNDED)
"""Ends of our own that disruption budgets give way to when time runs out."""


class Saving:
    """The work that one look saves with the cluster alone. ``found`` is the record of the interruption as far as it has
    come, ``did`` what was done now, ``failed`` the first refusal or silence that a step met.
    """

    def __init__(self, deps: Deps, found: Interruption, view: ClusterView, questions: Questions | None = None) -> None:
        self.deps, self.found, self.view = deps, found, view
        self.questions = questions or Questions(deps)
        self.now: datetime = interruption_records.moment(deps)
        self.offering: Offering | None = next((o for o in deps.offerings if o.pool == found.pool), None)
        self.price: UsdPerHour = self.offering.usd_per_hour if self.offering else Decimal(0)
        self.did: list[str] = []
        self.failed: PilotlightError | None = None
        self._refused: set[str] = set()  # Turns of Kueue's work.

    @property
    def boot_s(self) -> Seconds:
        """Seconds that a replacement takes to boot."""
        return self.offering.boot_s if self.offering else 0.0

    def steps(self, node: Node) -> tuple[Move, ...]:
        """Moves that are left to do, as the last look shows it."""
        node = msgspec.structs.replace(node, pods=tuple(self._as_saved(p) for p in node.pods))
        return drain_moves(self.found, node, self.view.nodes, self.price, self.boot_s, self.now)

    def _count(self, node: Node) -> None:
        """Count what would be lost if all ended now. An evicted pod's loss stays as it was when it was evicted."""
        leaving = groups(node, self.view.nodes, self.price, self.now, self.found.leaving)
        pods = (pod for group in leaving for pod in group.pods)
        gone = {**self.found.evicted, GONE: self.now}
        lost = {p.key: unsaved_work(self._as_saved(p), node, self.price, self.now) for p in pods if p.key not in gone}
        self._note(lost={**lost, **{uid: was for uid, was in self.found.lost.items() if uid in gone}})

    def save(self, node: Node) -> None:
        """Save with the cluster alone what can be. Nothing says who was asked: early enough, they are asked again."""
        if self.found.truth == "unverified":  # Asked first: without the store nobody knows who else closed the node.
            self.found = self.questions.verify(self.found, node, self.now)
        if self.found.truth == "disproved":
            return
        since_s = (self.now - self.found.begin).total_seconds()
        asked = [p.key for p in node.gpu_pods if p.checkpoint_takes_s and since_s >= p.checkpoint_takes_s]
        self._note(asked=dict.fromkeys(asked, self.found.begin))
        pods = {p.uid: p for n in self.view.nodes for p in n.pods}
        for move in self.steps(node):
            if move.at <= self.now and move.do in ("cordon", "checkpoint", "evict"):
                self._try(partial(self._gently, move, pods))

    def _paused(self) -> bool:
        """True where people hold it. A store that does not say so keeps no work from being saved."""
        try:
            why = brake_records.pause_reason(self.deps.state, self.deps.name, self.found.pool)
        except Retry as error:
            self.failed, why = error, ""
        self.did += [why] if why else []
        return bool(why)

    def _try(self, step: "partial[None]") -> None:
        """A step that the cluster refuses or does not answer does not keep the next from being tried."""
        try:
            step()
        except Busy:
            return  # A disruption budget: tried again at the next look, until time ends.
        except BadRequest as gone:
            self.did.append(f"left out: {gone}")
        except (Retry, Denied) as error:
            self.failed = self.failed or error

    def _gently(self, move: Move, pods: Mapping[str, BoundPod]) -> None:
        """Carry out a move that needs no lease."""
        cluster = self.deps.cluster
        if move.do == "cordon":
            return self._cordon(move.subject)
        pod = pods[move.subject]
        if self.deps.apart:
            from pilotlight.decide.limits.set_apart import named_again

            pod = named_again(pod, self.deps.apart)
        name = f"{pod.namespace}/{pod.name}"
        if move.do == "checkpoint":
            cluster.tell(pod.namespace, pod.name, CHECKPOINT_NOW, self._said())
            self._note(asked={**self.found.asked, pod.key: self.now})
            self.did.append(f"asked {name} for a checkpoint")
        elif self._may_evict(pod, move) and self._evict(pod, move):
            self._note(evicted={**self.found.evicted, pod.key: self.now})
            cut_s = self._grace_s(pod)
            within = (
                f", within {human(cut_s)} instead of its grace of {human(pod.grace_s)}" if cut_s is not None else ""
            )
            self.deps.tell(pod.namespace, pod.name, MOVED, self._moved() + within, self.found.instance)
            self.did.append(f"evicted {name}{within}")

    def spot_pools(self) -> tuple[str, ...]:
        """The policy's pools of spot."""
        return tuple(name for name, pool in self.deps.policy.pools.items() if pool.capacity_type == "spot")

    def room_on_spot(self, pod: BoundPod) -> bool:
        """True where a ready node on spot has free GPUs for a pod."""
        return room_for(pod, self.found.node, [n for n in self.view.nodes if n.pool in self.spot_pools()])

    def _evict(self, pod: BoundPod, move: Move) -> bool:
        """Where what is held for a node ends, disruption budgets give way when time runs out.

        False where the cluster does not let us: the pod runs until its node goes, and its loss is counted up to then.
        """
        grace_s, leaves = self._grace_s(pod), True
        try:
            self.deps.cluster.evict(pod.namespace, pod.name, pod.uid, grace_s)
        except Busy:
            if self.found.kind not in _FORCED or move.by is None or self.now < move.by:
                raise
            try:
                own_s = pod.grace_s if grace_s is None else grace_s
                self.deps.cluster.delete(pod.namespace, pod.name, pod.uid, own_s)
            except Denied as no:
                self.did.append(f"left {pod.namespace}/{pod.name} to end with its node: {no}")
                leaves = False
        if self.found.kind in ("hard-cap", UNFUNDED) and self.view.reserving:
            self._refuse_its_queued_work(pod)
        return leaves

    def _refuse_its_queued_work(self, pod: BoundPod) -> None:
        """Kueue's work whose budget stopped its pod: its Job makes no other. A disruption budget that keeps the pod
        keeps its work too. A refusal that fails stops nothing.
        """
        cluster = self.deps.cluster
        own = (w for w in self.view.reserving if w.owner and (w.namespace, w.owner) == (pod.namespace, pod.owner))
        work = next(own, None)
        if work is None or work.turn in self._refused or not isinstance(cluster, AdmittingCluster):
            return
        self._refused.add(work.turn)
        from pilotlight.flow.cycle.kueue_refusals import refuse_running

        try:
            self.did.append(refuse_running(self.deps, cluster, work, self.found.why, self.now))
        except (Denied, Retry) as error:
            self.did.append(f"did not refuse Workload {work.namespace}/{work.name}: {error}")

    def _grace_s(self, pod: BoundPod) -> Seconds | None:
        """The grace of a pod that asks for more than its node is held for: what is left. None where its own will do."""
        if self.found.kind not in _FORCED or self.found.deadline is None:
            return None
        since = self.found.begin if self.found.kind == UNFUNDED else self.now  # Nothing ends the node.
        left_s = (self.found.deadline - since).total_seconds() - MARGIN_S
        return max(1.0, left_s) if pod.grace_s > max(1.0, left_s) else None

    def _cordon(self, node: str) -> None:
        try:
            doubted, seen = self.found.truth == "unverified", self.view.node_of(self.found.instance, node)
            if seen is not None:
                node_marks.hear_opened(self.deps, seen, self.now)
            node_marks.hold(self.deps, node, "rescue", f"{self.found.kind} of {self.found.instance}", doubted=doubted)
        except Retry:  # A store that does not answer keeps no node open.
            self.deps.cluster.cordon(self.deps.known_as(node))
        self.did += [] if self.found.cordoned else [f"cordoned {node}"]
        self._note(cordoned=True)

    def _uncordon(self, node: str) -> None:
        node_marks.lift(self.deps, node, "rescue")
        self._note(cordoned=False)
        self.did.append(f"uncordoned {node}")

    def _may_evict(self, pod: BoundPod, move: Move) -> bool:
        if self.deps.mode_of(self.found.pool) != "act":
            return False
        if self.found.kind == PREEMPTION:  # Without a cordon: the pod that waits is bound in its place.
            return pod.key in self.found.asked
        if self.found.kind in AT_LEISURE:  # Nothing ends it: who cannot move yet goes on working.
            if self.found.kind == BACK:
                in_time = self.found.until is not None and self.now < self.found.until and not self.found.is_over
                return in_time and self.found.replaced and self.room_on_spot(pod)
            return self.found.replaced and room_for(pod, self.found.node, self.view.nodes)
        return self.found.replaced or (move.by is not None and self.now >= move.by)

    def _empty(self, node: Node) -> bool:
        try:
            return not [
                p
                for p in self.deps.cluster.bound_pods(self.deps.known_as(node.name))
                if p.gpu is not None and not p.daemonset
            ]
        except (Retry, Denied):
            return False

    def _drained(self, node: Node) -> bool:
        """True where pods without GPUs have left too, by their budgets. Near the deadline nobody waits for them."""
        end = self.found.deadline or self.found.until
        try:
            self.deps.cluster.drain(self.deps.known_as(node.name))
        except BadRequest:
            return True  # The node is gone.
        except (Retry, Denied):
            return end is not None and self.now >= end - timedelta(seconds=MARGIN_S)
        return True

    def _as_saved(self, pod: BoundPod) -> BoundPod:
        return msgspec.structs.replace(pod, checkpointed_at=assumed_saved(pod, self.found.asked, self.now))

    def _said(self) -> str:
        if self.found.kind in PODS_LEAVE:
            return f"save now: this pod leaves {self.found.node}: {self.found.why}"
        when = f"at {self.found.deadline:%H:%M:%S} UTC" if self.found.deadline else "perhaps soon"
        return f"save now: {self.found.node or self.found.instance} goes {when} ({self.found.kind})"

    def _moved(self) -> str:
        if self.found.kind in STOP_KINDS:
            capped = self.found.kind == "hard-cap"
            ends = "what its budget holds for its node ends" if capped else "its class's max_runtime ends"
            return f"evicted by Pilotlight: {ends} ({self.found.why})"
        if self.found.kind in PODS_LEAVE:
            return f"evicted by Pilotlight: {self.found.why}"
        room = "room was asked for before" if self.found.replaced else "room comes after it"
        where = self.found.node or self.found.instance
        return f"evicted by Pilotlight: {where} is taken by {self.found.kind} ({self.found.why}); {room}"

    def _note(self, **fields: object) -> None:
        self.found = msgspec.structs.replace(self.found, **fields)
