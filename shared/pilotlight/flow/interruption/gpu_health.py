"""Pods are moved off a node whose GPUs are not well where all of their classes say so, as off one that is too old."""

from pilotlight.decide.nodes.node_age import moves_on
from pilotlight.decide.nodes.other_autoscalers import other_autoscalers
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.interruption.interruption import SICK
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.old_nodes import move_tried_lately, open_move
from pilotlight.flow.records import brake_records, node_marks


def begin(deps: Deps) -> None:
    """Begin one move in each pool that acts: off a node that a tick has closed, and where no other of it goes."""
    closed = {mark.node: mark.owners["sick"].why for mark in node_marks.every(deps) if "sick" in mark.owners}
    if not closed:
        return
    going, now = {kept.found.pool for kept in interruption_records.open_interruptions(deps)}, deps.now()
    view = deps.observe()
    others = other_autoscalers(deps.policy, view, deps.pools.describe(), now)
    for node in sorted(view.nodes, key=lambda one: one.name):
        if node.name not in closed or not node.gpu_pods or node.pool in going or node.pool in others:
            continue
        rules = deps.policy.pools.get(node.pool)
        ours = rules is not None and rules.handled_by == "pilotlight" and deps.mode_of(node.pool) == "act"
        if (
            not ours
            or brake_records.pause_reason(deps.state, deps.name, node.pool)
            or move_tried_lately(deps, node, now)
        ):
            continue
        if all(moves_on(pod, _says(deps, pod)) for pod in node.gpu_pods):
            open_move(deps, node, SICK, closed[node.name], now)
            going.add(node.pool)


def _says(deps: Deps, pod: BoundPod) -> str:
    return deps.policy.of_class(pod.workload_class or "batch").at_sick_gpu  # type: ignore[arg-type]
