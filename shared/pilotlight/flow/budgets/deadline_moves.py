"""Begins the moves of jobs with a deadline: off spot where they end in time only on on-demand, and back to spot.

The rescue of interruptions does it: room is asked for first, and a pod leaves once its checkpoint is safe. Back to spot
it goes only once there is room for it.
"""

from datetime import timedelta

import msgspec

from pilotlight.decide.interruption.drain_plan import unsaved_work
from pilotlight.decide.job_deadlines.job_deadlines import Back, Behind, back_to_spot, behind
from pilotlight.decide.offers.first_work import as_learned
from pilotlight.decide.offers.selection import Eligible, eligible
from pilotlight.errors import Conflict
from pilotlight.facts.interruption.drain_times import TICK_S
from pilotlight.facts.interruption.interruption import BACK, MOVE, Interruption
from pilotlight.facts.workload import PodShape
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.ports.state import ABSENT

AGAIN = timedelta(hours=1)
"""A job that found no room on spot is moved there no sooner again."""


def begin(deps: Deps, snapshot: Snapshot) -> None:
    """Record each move that is due, with its alert: the next look carries it on. What is at work there goes on."""

    sold = as_learned(deps.offerings, snapshot.memory)

    def able(shape: PodShape) -> Eligible:
        return eligible(shape, sold, deps.policy, deps.throughput, snapshot.memory, snapshot.now)

    acts = {pool for pool in deps.policy.pools if deps.mode_of(pool) == "act"}
    stays = [n for n in snapshot.view.nodes if n.name not in snapshot.leaving and n.pool in acts]
    staying = [n for n in stays if not snapshot.stays(n.pool, n.instance or n.name)]
    found, _ = behind(staying, able, snapshot.memory, snapshot.now)
    for one in found:
        _begin(deps, one, snapshot)
    if any(pool.capacity_type == "spot" for pool in deps.policy.pools.values()):
        for back in back_to_spot(staying, able, snapshot.memory, snapshot.now):
            _begin(deps, back, snapshot)


def _begin(deps: Deps, one: Behind | Back, snapshot: Snapshot) -> None:
    node, now = one.node, snapshot.now
    instance = node.instance or node.name
    known = interruption_records.find(deps, instance)
    offering = next((o for o in deps.offerings if o.pool == node.pool), None)
    if offering is None or (known and not known.found.is_over):
        return
    if isinstance(one, Back) and known and known.found.kind == BACK and now - known.found.received_at < AGAIN:
        return
    grace_s = max(pod.grace_s for pod in node.gpu_pods)
    ends = now + timedelta(seconds=one.boot_s + grace_s + TICK_S) if isinstance(one, Behind) else None
    found = Interruption(
        cluster=deps.name,
        instance=instance,
        kind=MOVE if isinstance(one, Behind) else BACK,
        received_at=now,
        begin=now,
        deadline=ends,
        until=one.until if isinstance(one, Back) else None,
        pool=node.pool,
        node=node.name,
        ours=True,
        why=one.why,
        lost={pod.uid: unsaved_work(pod, node, offering.usd_per_hour, now) for pod in node.gpu_pods},
    )
    if isinstance(one, Behind):  # Of the other people hear once there is room for it.
        message = interruption_records.opening(found, len(node.gpu_pods), offering.usd_per_hour, now)
        found = msgspec.structs.replace(found, messages=(message,))
    try:
        interruption_records.write(deps, interruption_records.Versioned(found, ABSENT))
    except Conflict:
        return  # Another look began it.
