"""Preemption by consent: a pod that runs saves, and leaves for one of a higher priority that waits.

It is begun only where the plan says that one waits for money or capacity, waiting is dearer by the rule of
``decide/interruption/preemption.py``, and the class of the pod that runs consents. Its node takes pods all the while:
the scheduler binds the one that waits first. Nothing is bought for it. Once the one that waits is served otherwise, or
nothing is saved within half an hour, it is called off.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from pilotlight.decide.interruption.give_way import GiveWay, give_way, is_consenting
from pilotlight.decide.nodes.other_autoscalers import others_at
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.interruption.interruption import PREEMPTION, Preempts
from pilotlight.facts.policy import Policy
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.own_moves import AGAIN, is_ours, open_move
from pilotlight.flow.observe.snapshot import Snapshot


class DuePreemption(NamedTuple):
    """A preemption that the next tick begins, on a node."""

    way: GiveWay
    node: Node
    preempts: Preempts


def begin_preempting(deps: Deps) -> None:
    """Begin one preemption in each pool that acts, and where none of its nodes is on its way out."""
    if not _may_help(deps.observe(), deps.policy):
        return
    snapshot, plan = preview(deps, releases=True)
    for due in due_now(deps, snapshot, plan):
        way = due.way
        open_move(deps, due.node, PREEMPTION, _why(way), snapshot.now, due.preempts, (way.running_uid,))


def due_now(deps: Deps, snapshot: Snapshot, plan: Plan) -> Iterator[DuePreemption]:
    """Preemptions to begin after a look: one a pool, one for each that waits, none of what was asked within a day."""
    view, now = snapshot.view, snapshot.now
    pairs = give_way(plan, view, snapshot.memory, deps.policy, now, consenting=True)
    ways = [way for way in pairs if way.acts]
    if not ways:
        return
    going, served = _begun(deps)
    asked = set(_asked_lately(deps, now))
    others = others_at(deps.policy, view, snapshot.pools, now)
    nodes = {node.name: node for node in view.nodes}
    for way in ways:
        node = nodes[way.node]
        if way.pool in going or way.pod_uid in served or others.stays(way.pool, node.instance or node.name):
            continue
        owner = next(_owner(pod) for pod in node.gpu_pods if pod.uid == way.running_uid)
        if owner not in asked and is_ours(deps, node, now, (PREEMPTION,)):
            going.add(way.pool)
            served.add(way.pod_uid)
            yield DuePreemption(way, node, Preempts(uid=way.pod_uid, pod=way.pod, owner=owner))


def _begun(deps: Deps) -> tuple[set[str], set[str]]:
    """Pools of which a node is on its way out, and pods for which another is asked to give way."""
    begun = [kept.found for kept in interruption_records.open_interruptions(deps)]
    return {one.pool for one in begun}, {one.preempts.uid for one in begun if one.preempts is not None}


def _may_help(view: ClusterView, policy: Policy) -> bool:
    """True where a pod that waits has a higher priority than one that consents: only then is a plan made."""
    runs = (pod.priority for node in view.nodes for pod in node.gpu_pods if is_consenting(pod, policy))
    most = max((pod.shape.priority for pod in view.pending), default=None)
    return most is not None and any(priority < most for priority in runs)


def _asked_lately(deps: Deps, now: datetime) -> Iterator[str]:
    """Owners of pods that were asked to give way within a day."""
    for one in interruption_records.every(deps.state, deps.name):
        if one.preempts is not None and now - one.received_at < AGAIN:
            yield one.preempts.owner


def _owner(pod: BoundPod) -> str:
    return f"{pod.namespace}/{pod.owner or pod.name}"


def _why(way: GiveWay) -> str:
    who = f"{way.running} (priority {way.running_priority}) gives way to {way.pod} (priority {way.priority})"
    return f"{who}, which waits: {way.waits}; {way.why}"
