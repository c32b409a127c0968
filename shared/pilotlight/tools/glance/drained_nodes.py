"""Nodes that a drain is at: a plan judges them by their price alone, and what is under way with them goes before it."""

import msgspec

from pilotlight.facts.decisions import NodeVerdict, Plan
from pilotlight.flow.budgets.interruption_records import OnItsWay, on_their_way
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot


def with_drains(deps: Deps, snapshot: Snapshot, plan: Plan) -> Plan:
    """The plan in which a node that is being emptied says so: without GPU pods it goes, with some it is kept until they
    have left. A node of which a pod gives way to another is kept."""
    words = on_their_way(deps, snapshot.now)
    if not words:
        return plan
    busy = {node.name for node in snapshot.view.nodes if node.gpu_pods}
    return msgspec.structs.replace(
        plan, nodes=tuple(_as_drained(node, words, node.node in busy) for node in plan.nodes)
    )


def _as_drained(node: NodeVerdict, words: dict[str, OnItsWay], busy: bool) -> NodeVerdict:
    way = words.get(node.instance) or words.get(node.node)
    if way is None or node.verdict == "release":
        return node
    if busy or not way.goes:
        return msgspec.structs.replace(node, why=f"{node.why}; {way.words}")
    return msgspec.structs.replace(node, verdict="release", why=way.words, blocked=False)
