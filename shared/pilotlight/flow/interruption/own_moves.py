"""Moves that nobody else orders: off nodes that are too old, or whose GPUs are not well, or whose paid block ends.

Nothing forces the first two: what has not moved within half an hour stays, the node takes pods again, and a day later
it is tried anew. A block says when it ends from its first day: what runs on it is saved and moved before, as after a
cloud's notice; the cloud's own event, forty minutes before, is only a reason to look.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, get_args

import msgspec

from pilotlight.decide.interruption.drain_plan import CORDON_S, moves_on, unsaved_work
from pilotlight.decide.limits.policy_schedule import NOTICE, effective, emptied_by, leave_off_hours
from pilotlight.decide.nodes.other_autoscalers import others_at
from pilotlight.errors import Conflict
from pilotlight.facts.capacity import Node
from pilotlight.facts.interruption.interruption import (
    LEAD_S,
    OFF_HOURS,
    RENEW,
    SICK,
    SOONER,
    Interruption,
    Preempts,
)
from pilotlight.facts.interruption.notice_kinds import WORLD, NoticeCloud
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.budgets.interruption_records import Versioned
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.interrupt import interrupt, news
from pilotlight.flow.observe.known_instances import without_stopped
from pilotlight.flow.records import brake_records, node_marks
from pilotlight.ports.state import ABSENT

AGAIN = timedelta(days=1)
"""A node whose pods did not move is asked about again after so long."""

_CLOUDS: tuple[NoticeCloud, ...] = get_args(NoticeCloud)


def begin_off_old(deps: Deps) -> None:
    """Begin one replacement in each pool that acts and where none of its nodes is on its way out."""
    if not any(pool.renew.asks for pool in deps.policy.pools.values()):
        return
    from pilotlight.decide.nodes.node_age import movable

    now = deps.now()
    going = {kept.found.pool for kept in interruption_records.open_interruptions(deps)}
    pools = deps.pools.describe()
    view, _ = without_stopped(deps.observe(), pools)
    policy = effective(deps.policy, now)
    others = others_at(policy, view, pools, now)
    for node, why in movable([n for n in view.nodes if not move_tried_lately(deps, n, now)], pools, policy, now):
        stays = node.pool in going or others.stays(node.pool, node.instance or node.name)
        if not stays and is_ours(deps, node, now):
            open_move(deps, node, RENEW, why, now)


_MOVES = (RENEW, SICK, OFF_HOURS)


def move_tried_lately(deps: Deps, node: Node, now: datetime, kinds: Sequence[str] = _MOVES) -> bool:
    """True where it was tried of late to move a node's pods, by one of these kinds."""
    past = interruption_records.past(deps, node.instance or node.name) if node.gpu_pods else ()
    return any(one.kind in kinds and now - one.received_at < AGAIN for one in past)


def open_move(
    deps: Deps,
    node: Node,
    kind: Literal["node-age", "sick-gpu", "off-hours", "preemption"],
    why: str,
    now: datetime,
    preempts: Preempts | None = None,
    leaving: tuple[str, ...] = (),
) -> None:
    """Begin to move a node's pods, or those ``leaving``, by uid: the record from which ticks carry it on. Off-hours
    begin half an hour after."""
    offering = next((one for one in deps.offerings if one.pool == node.pool), None)
    if offering is None:  # Without a price nothing is bought in its place.
        return
    pods = [pod for pod in node.gpu_pods if not leaving or pod.uid in leaving]
    price, begin = offering.usd_per_hour, now + NOTICE if kind == OFF_HOURS else now
    found = Interruption(
        cluster=deps.name,
        instance=node.instance or node.name,
        kind=kind,
        received_at=now,
        begin=begin,
        leaving=leaving,
        preempts=preempts,
        until=begin + timedelta(seconds=CORDON_S),
        replaced=kind == OFF_HOURS,
        pool=node.pool,
        node=node.name,
        ours=True,
        why=why,
        lost={pod.uid: unsaved_work(pod, node, price, now) for pod in pods},
    )
    opening = interruption_records.opening(found, len(pods), price, now)
    try:
        interruption_records.write(deps, Versioned(msgspec.structs.replace(found, messages=(opening,)), ABSENT))
    except Conflict:
        return  # Another look began one.


def begin_off_sick(deps: Deps) -> None:
    """Begin one move in each pool that acts: off a node that a tick has closed, and where no other of it goes."""
    closed = {mark.node: mark.owners["sick"].why for mark in node_marks.every(deps) if "sick" in mark.owners}
    if not closed:
        return
    going, now = {kept.found.pool for kept in interruption_records.open_interruptions(deps)}, deps.now()
    view = deps.observe()
    others = others_at(deps.policy, view, deps.pools.describe(), now)
    for node in sorted(view.nodes, key=lambda one: one.name):
        if (
            node.name not in closed
            or node.pool in going
            or others.stays(node.pool, node.instance or node.name)
            or not is_ours(deps, node, now)
        ):
            continue
        if all(moves_on(pod, deps.policy, "sick-gpu") for pod in node.gpu_pods):
            open_move(deps, node, SICK, closed[node.name], now)
            going.add(node.pool)


def is_ours(deps: Deps, node: Node, now: datetime, kinds: Sequence[str] = _MOVES) -> bool:
    """True for a node with work that we may empty: its pool acts, nobody paused it, and it was not tried of late."""
    rules = deps.policy.pools.get(node.pool)
    ours = rules is not None and rules.handled_by == "pilotlight" and deps.mode_of(node.pool) == "act"
    paused = ours and brake_records.pause_reason(deps.state, deps.name, node.pool)
    return bool(ours and node.gpu_pods) and not paused and not move_tried_lately(deps, node, now, kinds)


def begin_off_hours(deps: Deps) -> None:
    """Begin to empty the nodes whose pods' classes a rule has leave their pool from half an hour on, and which consent.

    All of a pool at once: nothing is bought there for them while the rule holds. What a disruption budget keeps half an
    hour beyond that goes on working until the next day.
    """
    now, policy = deps.now(), deps.policy
    leave = leave_off_hours(policy, now)
    if not leave:
        return
    going = {kept.found.instance for kept in interruption_records.open_interruptions(deps)}
    view = deps.observe()
    others = others_at(policy, view, deps.pools.describe(), now)
    for node in sorted(view.nodes, key=lambda one: one.name):
        rules = emptied_by(node, leave)
        known = (node.instance or node.name) in going or others.stays(node.pool, node.instance or node.name)
        if rules and not known and is_ours(deps, node, now):
            open_move(deps, node, OFF_HOURS, f"rule {', '.join(rule.name for rule in rules)}: off-hours begin", now)


def begin_before_block_ends(deps: Deps) -> None:
    """Begin the rescue of every node whose block ends within its lead. What is begun is carried on as any other."""
    reserved = {name: pool for name, pool in deps.policy.pools.items() if pool.capacity_type == "reserved"}
    if not reserved:
        return
    now = interruption_records.moment(deps)
    whose = next((cloud for cloud in _CLOUDS if cloud == deps.pools.cloud), WORLD)
    for state in deps.pools.describe():
        for paid in state.paid if state.name in reserved else ():
            if not paid.takes or paid.ends is None or paid.ends - now > timedelta(seconds=LEAD_S):
                continue
            for instance in paid.instances:
                notice = InterruptionNotice(
                    cluster=deps.name,
                    instance=instance,
                    kind="capacity-reservation",
                    cloud=whose,
                    identity=f"{instance}/{paid.name}",
                    at=now,
                    deadline=paid.ends,
                )
                if _new(deps, notice, paid.ends):
                    interrupt(deps, notice)


def _new(deps: Deps, notice: InterruptionNotice, ends: datetime) -> bool:
    """True where an instance's end is yet to be begun: notices that came before do not keep it from it."""
    known = interruption_records.find(deps, notice.instance)
    if known is None:
        return True
    return news(known.found, notice) and not any(
        _begun(one, notice, ends) for one in interruption_records.past(deps, notice.instance)
    )


def _begun(past: Interruption, notice: InterruptionNotice, ends: datetime) -> bool:
    """True where one that is over was begun here, of this end: what is posted of it sooner, or otherwise, was not."""
    return (
        (past.kind, past.cloud, past.outcome == "stayed") == (notice.kind, notice.cloud, False)
        and (past.deadline is not None and abs(past.deadline - ends) < SOONER)
        and (past.said_at is not None and abs(past.said_at - past.received_at) < SOONER)
        and ends - past.received_at <= timedelta(seconds=LEAD_S)
    )
