"""The rescue of an instance that goes: what to do when, so that the least is lost by its deadline.

A pod that can be asked saves first and leaves once that is safe: more work on a node that goes would be done twice;
with a long notice it works on until its replacement is ready, or it must save to be in time. A pod that cannot save
stays as long as its grace allows: it may end by itself. A serving pod leaves when its replacement is ready. Pods of a
gang move together, as one. Whoever loses most dollars if killed comes first: where a disruption budget lets only some
leave, or time ends, it is the cheap ones that stay behind.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from pilotlight.decide.interruption.verify_notice import untrue_at
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.interruption.drain_times import MARGIN_S, RETRY_S, TICK_S
from pilotlight.facts.interruption.interruption import (
    BACK,
    LEAD_S,
    NOTICE_S,
    OFF_HOURS,
    PODS_LEAVE,
    PREEMPTION,
    RENEW,
    SICK,
    STOP_KINDS,
    UNFUNDED,
    Interruption,
    Lost,
    Move,
)
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.policy import MoveReason, Policy
from pilotlight.units import HOUR, MILLI_PER_GPU, Seconds, Usd, UsdPerHour, cents, human, per_hour

CORDON_S: Seconds = 1800.0
"""A node that may be taken, and is emptied for that, is cordoned for so long at most."""

LONG_S: Seconds = 600.0
"""With more notice than this a pod works on until its replacement is ready or it must save; else it saves at once."""

DOUBT_S: Seconds = 120.0
"""A node whose end nobody confirms is closed so long at most before the first pod must leave it."""

REBALANCE_SHARE = 0.3
"""The share of rebalance recommendations that an interruption follows: 9 of 30 in aws-node-termination-handler#141."""

RESTORE_S: Seconds = 60.0

_AT_ONCE: dict[str, str] = {
    OFF_HOURS: "off-hours have begun",
    UNFUNDED: "its budget has no room for its part of the node",
}
"""Ends of our own by which a pod that cannot save leaves as they begin."""


class Movers(NamedTuple):
    """Pods that move together: a gang's, or one."""

    pods: tuple[BoundPod, ...]
    usd: Usd

    @property
    def takes_s(self) -> Seconds:
        """Seconds that a checkpoint of all takes that they are asked for; 0 where one of them cannot be asked."""
        each = [pod.checkpoint_takes_s for pod in self.pods]
        return max(each) if all(each) else 0.0

    @property
    def grace_s(self) -> Seconds:
        """Seconds that the slowest takes to stop."""
        return max(pod.grace_s for pod in self.pods)


def deadline_of(notice: InterruptionNotice, now: datetime) -> datetime | None:
    """When the instance goes; None where it may not go, or has gone."""
    if notice.kind not in NOTICE_S:
        return None
    left = timedelta(seconds=NOTICE_S[notice.kind])
    ends = notice.deadline or (notice.at or now) + left
    waits = notice.kind == "lifecycle" and notice.deadline is None and ends <= now  # A hook waits for its answer.
    return now + left if waits else ends


def begin_of(deadline: datetime | None, now: datetime) -> datetime:
    """When to start: now, but not before the lead of a deadline that is far off."""
    return now if deadline is None else max(now, deadline - timedelta(seconds=LEAD_S))


def unsaved_work(pod: BoundPod, node: Node, price: UsdPerHour, at: datetime) -> Lost:
    """The work that a pod loses if it stops at ``at``: since its last checkpoint, or since it began."""
    since = max(filter(None, (pod.checkpointed_at, pod.started_at)), default=node.created_at)
    seconds = max(0.0, (at - since).total_seconds())
    milli = pod.gpu.total_milli if pod.gpu else 0
    share = Decimal(milli) / (MILLI_PER_GPU * node.gpus) if node.gpus else Decimal(1)
    return Lost(
        pod=f"{pod.namespace}/{pod.name}",
        gpu_hours=seconds / HOUR * milli / MILLI_PER_GPU,
        usd=per_hour(price, seconds) * min(share, Decimal(1)),
    )


def groups(
    node: Node, others: Sequence[Node], price: UsdPerHour, now: datetime, leaving: Collection[str] = ()
) -> list[Movers]:
    """Pods that have to leave a node, gangs with their pods on other nodes, the dearest loss first. Where some are
    ``leaving``, by uid, the others stay."""
    by_key: dict[str, list[BoundPod]] = defaultdict(list)
    for pod in node.gpu_pods:
        if leaving and pod.uid not in leaving:
            continue
        by_key[pod.gang or pod.uid].append(pod)
    for pod in (p for n in others if n.name != node.name for p in n.gpu_pods if p.gang in by_key and p.gang):
        by_key[pod.gang].append(pod)
    made = [
        Movers(tuple(pods), sum((unsaved_work(p, node, price, now).usd for p in pods), Decimal(0)))
        for pods in by_key.values()
    ]
    return sorted(made, key=lambda group: (-group.usd, group.pods[0].uid))


def drain_moves(
    found: Interruption, node: Node, others: Sequence[Node], price: UsdPerHour, boot_s: Seconds, now: datetime
) -> tuple[Move, ...]:
    """Every step that is left, in the order in which they come due. Steps that ``found`` knows as done are left out."""
    end = found.deadline - timedelta(seconds=MARGIN_S) if found.deadline else found.until or now
    leaving = groups(node, others, price, now, found.leaving)
    moves: list[Move] = []
    for group in leaving:
        moves += _of_able(found, group, end, found.begin + timedelta(seconds=boot_s), now)
    if found.kind in PODS_LEAVE:
        stays = Move(at=found.begin, do="uncordon", subject=node.name, why="they left, and the node stays")
        return _in_order(moves if leaving else (stays,), now)
    first = min((m.at for m in moves if m.do == "evict"), default=found.begin)
    if found.truth == "unverified":
        return _in_order([*moves, *_doubted(found, node, first, end)], now)
    if found.kind in STOP_KINDS:
        moves += _of_others(found, node, end, bool(leaving))
    if leaving and not found.replaced:
        at = max(found.begin, first - timedelta(seconds=boot_s + TICK_S))
        moves.append(Move(at=at, do="replace", subject=node.name, why=f"a new node boots {human(boot_s)}"))
    asks_first = found.kind == BACK and not found.replaced
    if (node.schedulable or not found.cordoned) and not asks_first:
        moves.append(Move(at=found.begin, do="cordon", subject=node.name, why="nothing new may bind to it"))
    moves.append(_last(found, node, bool(leaving), end))
    return _in_order(moves, now)


def _in_order(moves: Sequence[Move], now: datetime) -> tuple[Move, ...]:
    return tuple(sorted(moves, key=lambda move: (_ORDER[move.do], move.at) if move.at <= now else (9, move.at)))


_ORDER = {"cordon": 0, "checkpoint": 1, "replace": 2, "evict": 3, "release": 4, "uncordon": 5}
"""Of steps that are due at once: what needs no cloud first, for a cloud may take its time."""


_UNFORCED = (RENEW, SICK, OFF_HOURS)
"""Moves of our own that end with what has not moved by then."""


def _doubted(found: Interruption, node: Node, first: datetime, end: datetime) -> list[Move]:
    """Moves of a node for a word that nobody confirms: nothing is bought in its place, and nothing of it is
    given back; it is closed shortly before the first pod must leave, and opened when it was not taken."""
    opens = Move(at=untrue_at(found) or end, do="uncordon", subject=node.name, why="it was not taken")
    if found.deadline is None or not (node.schedulable or not found.cordoned):
        return [opens]
    closes = max(found.begin, first - timedelta(seconds=DOUBT_S))
    return [Move(at=closes, do="cordon", subject=node.name, why="nothing new may bind to it"), opens]


def _last(found: Interruption, node: Node, busy: bool, end: datetime) -> Move:
    if busy and not found.deadline:
        return Move(at=end, do="uncordon", subject=node.name, why="it may not be taken after all")
    at = end if busy else found.begin
    why = "the deadline is near: what is left on it ends with it" if busy else "nothing is left on it"
    return Move(at=at, do="release", subject=node.name, why=why)


def _of_able(found: Interruption, group: Movers, end: datetime, ready: datetime, now: datetime) -> list[Move]:
    """Its moves; none where it would give way to others, and its checkpoint is not safe by the end."""
    if found.kind != PREEMPTION:
        return _of_group(found, group, end, ready, now)
    asked = max((found.asked[p.key] for p in group.pods if p.key in found.asked), default=None)
    safe = (asked or max(found.begin, now)) + timedelta(seconds=group.takes_s)
    return _of_group(found, group, end, ready, now) if group.takes_s > 0 and safe <= end else []


def _of_group(found: Interruption, group: Movers, end: datetime, ready: datetime, now: datetime) -> list[Move]:
    """A checkpoint where there is time for one, and the eviction."""
    first = group.pods[0]
    asked = max((found.asked[p.key] for p in group.pods if p.key in found.asked), default=None)
    start = found.begin
    if end - start > timedelta(seconds=LONG_S) and found.kind not in PODS_LEAVE:
        leaves = min(ready, end - timedelta(seconds=group.grace_s + TICK_S))
        start = max(start, leaves - timedelta(seconds=group.takes_s))
    safe = (asked or max(start, now)) + timedelta(seconds=group.takes_s)
    latest = max(found.begin, end - timedelta(seconds=group.grace_s))
    moves: list[Move] = []
    doubted = found.truth == "unverified"
    saves = bool(group.takes_s) and safe <= end
    if saves:
        at, why = _saved_at(group, asked) or safe, f"its checkpoint is safe; {cents(group.usd)} were at risk"
        moves += [
            Move(at=start, do="checkpoint", subject=p.uid, why=f"takes {human(group.takes_s)}", usd=group.usd)
            for p in group.pods
            if p.key not in found.asked and not _came_back(found, p)
        ]
        latest = max(latest, min(safe, end))
    elif found.kind in _AT_ONCE:
        at, why = found.begin, _AT_ONCE[found.kind]
    elif first.workload_class == "serving" and not doubted:
        at, why = min(latest, ready), "its replacement is ready, or its grace begins"
    else:
        at, why = latest, f"cannot save in time: may end by itself until then; {cents(group.usd)} at risk"
    if doubted:
        at, why = latest, "nobody confirms the notice: it stays as long as its grace allows"
    elif any(p.blocks for p in group.pods) and not saves:
        at = min(at, max(found.begin, latest - timedelta(seconds=RETRY_S)))
    moves += [
        Move(at=at, do="evict", subject=p.uid, why=why, by=latest, usd=group.usd)
        for p in group.pods
        if _leaves(found, p)
    ]
    return moves


def _of_others(found: Interruption, node: Node, end: datetime, busy: bool) -> Iterator[Move]:
    """Where a stop of our own ends a node, what holds no GPU leaves too: at once, or with the last that do."""
    for pod in node.others:
        if pod.key not in found.evicted:
            latest = max(found.begin, end - timedelta(seconds=pod.grace_s))
            at = max(found.begin, latest - timedelta(seconds=RETRY_S)) if busy else found.begin
            yield Move(at=at, do="evict", subject=pod.uid, why="its node ends", by=latest)


def _leaves(found: Interruption, pod: BoundPod) -> bool:
    """True for a pod that is to be evicted, and was not."""
    return not (pod.key in found.evicted or _stays(found) or _came_back(found, pod))


def _came_back(found: Interruption, pod: BoundPod) -> bool:
    """True for a pod that bound to a node which nothing forces empty after the first had to leave: it tolerates that
    the node is closed, and so would its copies, one after another."""
    if found.kind not in _UNFORCED or not found.evicted:
        return False
    first = min(found.evicted.values()).replace(microsecond=0)  # Clusters tell whole seconds.
    return pod.started_at is None or pod.started_at >= first


def _stays(found: Interruption) -> bool:
    """True where an unconfirmed notice makes nobody leave: it orders nothing, or its end was over when it was told."""
    return found.truth == "unverified" and (found.deadline is None or found.deadline <= found.begin)


def _saved_at(group: Movers, asked: datetime | None) -> datetime | None:
    """When the last of a group told that it has saved since it was asked."""
    told = [p.checkpointed_at for p in group.pods if asked and p.checkpointed_at and p.checkpointed_at >= asked]
    return max(told) if len(told) == len(group.pods) else None


def worth_moving(
    node: Node, others: Sequence[Node], price: UsdPerHour, boot_s: Seconds, now: datetime
) -> tuple[bool, str]:
    """True where a node that may be taken should be emptied, and the figures.

    Staying risks, with ``REBALANCE_SHARE``, the unsaved work, a restore and the wait for a boot. Moving costs the boot
    of a second node, the checkpoint and the restore for sure; and all unsaved work of pods that cannot save when asked.
    """
    leaving = groups(node, others, price, now)
    if not leaving:
        return False, "nothing runs on it"
    again = per_hour(price, boot_s + RESTORE_S)
    staying = Decimal(repr(REBALANCE_SHARE)) * (sum((g.usd for g in leaving), Decimal(0)) + again)
    moving = again + sum((per_hour(price, g.takes_s) if g.takes_s else g.usd for g in leaving), Decimal(0))
    figures = f"staying risks {cents(staying)} ({REBALANCE_SHARE:.0%} are taken), moving costs {cents(moving)}"
    return staying > moving, figures


def assumed_saved(pod: BoundPod, asked: Mapping[str, datetime], now: datetime) -> datetime | None:
    """The last checkpoint of a pod: as it tells, or that it was asked for, once its time for that is over."""
    at = asked.get(pod.key)
    if at is not None and pod.checkpoint_takes_s and now >= at + timedelta(seconds=pod.checkpoint_takes_s):
        return max(at, pod.checkpointed_at or at)
    return pod.checkpointed_at


def moves_on(pod: BoundPod, policy: Policy, move: MoveReason) -> bool:
    """True for a pod whose class moves for that, and that loses nothing: it saves when asked, or serves; no gang's."""
    serves = pod.workload_class == "serving"
    rules = policy.of_class(pod.workload_class or "batch")  # type: ignore[arg-type]
    return move in rules.may_move and not pod.gang and not pod.blocks and (pod.checkpoint_takes_s > 0 or serves)


def room_for(pod: BoundPod, leaving: str, nodes: Iterable[Node]) -> bool:
    """True where a ready node beside the one that goes has free GPUs for a pod."""
    wants = pod.gpu
    others = (n for n in nodes if n.name != leaving and n.ready and n.schedulable and not n.marked)
    return wants is None or any(
        n.slices.get(wants.resource, 0) >= wants.count
        if n.resource != wants.resource
        else sum(device >= wants.milli for device in n.devices) >= wants.count
        for n in others
    )
