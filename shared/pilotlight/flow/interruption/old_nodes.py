"""Nodes that work and are too old: their pods are moved to a new one, in order, and the old one is given back.

Nothing forces it: what has not moved within half an hour stays, the node takes pods again, and a day later it is tried
anew.
"""

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from pilotlight.decide.interruption.drain_plan import CORDON_S, unsaved_work
from pilotlight.decide.limits.policy_schedule import effective
from pilotlight.decide.nodes.node_age import movable
from pilotlight.decide.nodes.other_autoscalers import other_autoscalers
from pilotlight.errors import Conflict
from pilotlight.facts.capacity import Node
from pilotlight.facts.interruption.interruption import RENEW, SICK, Interruption
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.budgets.interruption_records import Versioned
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.stopped_nodes import without_stopped
from pilotlight.flow.records import brake_records
from pilotlight.ports.state import ABSENT

AGAIN = timedelta(days=1)
"""A node whose pods did not move is asked about again after so long."""


def begin(deps: Deps) -> None:
    """Begin one replacement in each pool that acts and where none of its nodes is on its way out."""
    if not any(pool.max_age or pool.drift == "replace" for pool in deps.policy.pools.values()):
        return
    now = deps.now()
    going = {kept.found.pool for kept in interruption_records.open_interruptions(deps)}
    pools = deps.pools.describe()
    view, _ = without_stopped(deps.observe(), pools)
    policy = effective(deps.policy, now) if deps.policy.schedules else deps.policy
    others = other_autoscalers(policy, view, pools, now)
    for node, why in movable([n for n in view.nodes if not move_tried_lately(deps, n, now)], pools, policy, now):
        held = node.pool in going or node.pool in others or brake_records.pause_reason(deps.state, deps.name, node.pool)
        if not held and deps.mode_of(node.pool) == "act" and policy.pools[node.pool].handled_by == "pilotlight":
            open_move(deps, node, RENEW, why, now)


def move_tried_lately(deps: Deps, node: Node, now: datetime) -> bool:
    """True where it was tried of late to move a node's pods."""
    last = interruption_records.last_filed(deps, node.instance or node.name) if node.gpu_pods else None
    return last is not None and last.kind in (RENEW, SICK) and now - last.received_at < AGAIN


def open_move(deps: Deps, node: Node, kind: Literal["node-age", "sick-gpu"], why: str, now: datetime) -> None:
    """Begin to move a node's pods: the record from which ticks carry it on."""
    offering = next((one for one in deps.offerings if one.pool == node.pool), None)
    if offering is None:  # Without a price nothing is bought in its place.
        return
    price = offering.usd_per_hour
    found = Interruption(
        cluster=deps.name,
        instance=node.instance or node.name,
        kind=kind,
        received_at=now,
        begin=now,
        until=now + timedelta(seconds=CORDON_S),
        pool=node.pool,
        node=node.name,
        ours=True,
        why=why,
        lost={pod.uid: unsaved_work(pod, node, price, now) for pod in node.gpu_pods},
    )
    opening = interruption_records.opening(found, len(node.gpu_pods), price, now)
    try:
        interruption_records.write(deps, Versioned(msgspec.structs.replace(found, messages=(opening,)), ABSENT))
    except Conflict:
        return  # Another look began one.
