"""Begins the move of work off a spot node where a job on it ends in time only on on-demand: replaced, saved, drained.

The rescue of interruptions does it: room is asked for first, and a pod leaves once its checkpoint is safe.
"""

from datetime import timedelta

import msgspec

from pilotlight.decide.capacity.due import Behind, behind
from pilotlight.decide.capacity.selection import Eligible, eligible
from pilotlight.decide.deadline import TICK_S, unsaved
from pilotlight.errors import Conflict
from pilotlight.facts.interruption import MOVE, Interruption
from pilotlight.facts.workload import PodShape
from pilotlight.flow.books import interruptions
from pilotlight.flow.deps import Deps
from pilotlight.flow.look.snapshot import Snapshot
from pilotlight.ports import ABSENT


def begin(deps: Deps, snapshot: Snapshot) -> None:
    """Record each move that is due, with its alert: the next look carries it on. What is at work there goes on."""

    def able(shape: PodShape) -> Eligible:
        return eligible(shape, deps.offerings, deps.policy, deps.throughput, snapshot.memory, snapshot.now)

    staying = [n for n in snapshot.view.nodes if n.name not in snapshot.leaving and deps.mode_of(n.pool) == "act"]
    found, _ = behind(staying, able, snapshot.memory, snapshot.now)
    for one in found:
        _begin(deps, one, snapshot)


def _begin(deps: Deps, one: Behind, snapshot: Snapshot) -> None:
    node, now = one.node, snapshot.now
    instance = node.instance or node.name
    known = interruptions.find(deps, instance)
    offering = next((o for o in deps.offerings if o.pool == node.pool), None)
    if offering is None or (known and not known.found.over):
        return
    grace_s = max(pod.grace_s for pod in node.gpu_pods)
    found = Interruption(
        cluster=deps.name,
        instance=instance,
        kind=MOVE,
        received_at=now,
        begin=now,
        deadline=now + timedelta(seconds=one.boot_s + grace_s + TICK_S),
        pool=node.pool,
        node=node.name,
        ours=True,
        why=one.why,
        lost={pod.uid: unsaved(pod, node, offering.usd_per_hour, now) for pod in node.gpu_pods},
    )
    message = interruptions.opening(found, len(node.gpu_pods), offering.usd_per_hour, now)
    found = msgspec.structs.replace(found, messages=(message,))
    try:
        interruptions.write(deps, interruptions.Versioned(found, ABSENT))
    except Conflict:
        return  # Another look began it.
