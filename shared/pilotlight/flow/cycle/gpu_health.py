"""Nodes whose GPUs are not well are closed to new pods, and open again once they are well."""

from pilotlight.decide.nodes.gpu_health import judge_gpu_health
from pilotlight.errors import Denied
from pilotlight.facts.capacity import Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.money.budgets import Money
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import brake_records, node_marks


def tend(deps: Deps, snapshot: Snapshot, _: Plan, __: Money) -> tuple[str, ...]:
    """Close those that are sick in pools that are acted on; leave those that are not any more. Pods stay."""
    by_pool = {offering.pool: offering for offering in deps.offerings}
    nodes = [node for node in snapshot.view.nodes if node.name not in snapshot.leaving]
    closed = judge_gpu_health(nodes, by_pool, snapshot.now).closed
    ours = {mark.node for mark in node_marks.every(deps) if "sick" in mark.owners}
    for node in nodes:
        if node.name in ours and node.name not in closed:
            node_marks.lift(deps, node.name, "sick")
        elif node.name in closed.keys() - ours and _may(deps, snapshot, node):
            _close(deps, node.name, closed[node.name])
    return ()


def _may(deps: Deps, snapshot: Snapshot, node: Node) -> bool:
    ours = deps.mode_of(node.pool) == "act" and not snapshot.stays(node.pool, node.instance or node.name)
    return ours and not brake_records.pause_reason(deps.state, deps.name, node.pool)


def _close(deps: Deps, node: str, why: str) -> None:
    try:
        node_marks.hold(deps, node, "sick", f"its GPUs are not well: {why}")
    except Denied:  # It is gone, or the right is missing, which doctor tells: nothing else waits for it.
        node_marks.lift(deps, node, "sick")
