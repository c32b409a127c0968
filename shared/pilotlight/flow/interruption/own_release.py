"""A group that terminates what we gave back waits for the answer of our hook: it gets it, and nobody is told again.

The notice is a hint: our own mark on the node, its cloud's word that it goes, and a node without GPU pods make it true.
"""

from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.budgets.interruption_records import Versioned
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.interruption.departing_node import node_of
from pilotlight.flow.records import brake_records
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.cluster_records import NODE_MARK


def answer_own_release(deps: Deps, notice: InterruptionNotice, view: ClusterView) -> Answer | None:
    """Answer the notice of a release of our own; None where it is of anything else. Raises what the ports do."""
    node = node_of(view, notice.instance) if notice.kind == "lifecycle" else None
    if node is None or node.gpu_pods:
        return None
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
