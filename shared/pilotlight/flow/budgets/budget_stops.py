"""A stop in order of a node that its budgets hold no further: an interruption of our own making, begun here."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from pilotlight.decide.interruption.drain_plan import unsaved_work
from pilotlight.decide.money.economics import LATE_S
from pilotlight.decide.money.node_end import Ending
from pilotlight.errors import Conflict
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.interruption.interruption import AT_LEISURE, PREEMPTION, STOP_KINDS, UNFUNDED, Interruption
from pilotlight.facts.messages import Outgoing
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import ABSENT
from pilotlight.units import Seconds, UsdPerHour

NAMED = 5
"""An alert names so many pods."""


def begin_stop(
    deps: Deps, node: Node, end: Ending, price: UsdPerHour, why: str, now: datetime, calls_s: Seconds
) -> bool:
    """Record it, with an alert: the next look carries it on. Whether a stop of ours is at work on the node now.

    A stop that begins late is orderly still, in the time of a plain one; a longer grace has what is left of what is
    held. What a cloud is said to do later, or may not do at all, gives way to it. ``price`` is what the node is held
    for, ``calls_s`` what the calls take that come after its own.
    """
    earliest = now + timedelta(seconds=max(0.0, end.least_s - LATE_S))
    deadline = max(end.at - timedelta(seconds=LATE_S + calls_s), earliest)
    instance = node.instance or node.name
    known = interruption_records.find(deps, instance)
    former = known.found if known and not known.found.is_over else None
    if former is not None and (former.kind in STOP_KINDS or _goes(former.of_node, deadline)):
        return former.kind in STOP_KINDS
    found = Interruption(
        cluster=deps.name,
        instance=instance,
        kind=end.kind,
        received_at=now,
        begin=now,
        deadline=deadline,
        pool=node.pool,
        node=deps.known_as(node.name),
        ours=True,
        why=why + _in_the_way(node),
        replaced=True,
        asked=former.asked if former else {},
        evicted=former.evicted if former else {},
        cordoned=former.of_node.cordoned if former else False,
        lost={pod.uid: unsaved_work(pod, node, price, deadline) for pod in node.gpu_pods},
    )
    told = interruption_records.given_way(deps, former, price, now) if former else ()
    opening = interruption_records.opening(found, len(node.gpu_pods), price, now)
    found = msgspec.structs.replace(found, messages=(*told, opening))
    try:
        interruption_records.write(
            deps, interruption_records.Versioned(found, known.version if known and former else ABSENT)
        )
    except Conflict:
        return False  # Another look carries on what was there: it is looked at again.
    return True


def begin_leave(
    deps: Deps, node: Node, pods: Sequence[BoundPod], price: UsdPerHour, why: str, now: datetime, by: datetime
) -> None:
    """Record that some pods leave a node ``by`` then, and that it stays.

    Any other end of it goes before, but one that begins after that, or that nothing presses: it goes on afterwards.
    """
    instance, uids = node.instance or node.name, {pod.uid for pod in pods}
    known = interruption_records.find(deps, instance)
    open_one = known.found if known and not known.found.is_over else None
    told, open_one = _before_preemption(deps, open_one, price, now)
    former, later = _apart(open_one)
    if (former is not None and uids.issubset(former.leaving)) or not _can_wait(later, by):
        return
    found = Interruption(
        cluster=deps.name,
        instance=instance,
        kind=UNFUNDED,
        received_at=now,
        begin=now,
        leaving=tuple(sorted(uids.union(former.leaving if former else ()))),
        deadline=by,
        pool=node.pool,
        node=deps.known_as(node.name),
        ours=True,
        why=why,
        replaced=True,
        asked=former.asked if former else {},
        evicted=former.evicted if former else {},
        lost={pod.uid: unsaved_work(pod, node, price, now) for pod in pods},
        later=later,
    )
    opening = interruption_records.opening(found, len(pods), price, now)
    found = msgspec.structs.replace(found, messages=(*told, *(former.messages if former else ()), opening))
    with suppress(Conflict):  # Another look carries on what was there: it is looked at again.
        interruption_records.write(
            deps, interruption_records.Versioned(found, known.version if known and not known.found.is_over else ABSENT)
        )


def _before_preemption(
    deps: Deps, open_one: Interruption | None, price: UsdPerHour, now: datetime
) -> tuple[tuple[Outgoing, ...], Interruption | None]:
    """A budget goes before a pod that waits: what is told of the preemption that ends, and any other that is open."""
    if open_one is None or open_one.kind != PREEMPTION:
        return (), open_one
    return interruption_records.given_way(deps, open_one, price, now), None


def _apart(open_one: Interruption | None) -> tuple[Interruption | None, Interruption | None]:
    """What is known of pods that leave a node, and of an end of the node itself."""
    if open_one is None or open_one.kind != UNFUNDED:
        return None, open_one
    return open_one, open_one.later


def _can_wait(later: Interruption | None, by: datetime) -> bool:
    """True where nothing was done yet of the end of a node, and it begins later or is pressed by nothing."""
    if later is None:
        return True
    begun = later.asked or later.evicted or later.replaced
    return not begun and (later.kind in AT_LEISURE or later.begin > by)


def _in_the_way(node: Node) -> str:
    """The pods that would keep the node from being emptied, by name, each with its reason."""
    blocking = [f"{pod.namespace}/{pod.name} ({pod.blocks})" for pod in node.pods if pod.blocks]
    more = f" and {len(blocking) - NAMED} more" if len(blocking) > NAMED else ""
    return f"; in the way, and made to leave: {', '.join(blocking[:NAMED])}{more}" if blocking else ""


def _goes(former: Interruption, by: datetime) -> bool:
    """True where a cloud takes it for certain, no later than that."""
    takes = former.truth == "verified" and former.kind != UNFUNDED
    return takes and former.deadline is not None and former.deadline <= by
