"""Begins the orderly stop of a node that its budgets hold no further: an interruption of our own making."""

from datetime import datetime, timedelta

import msgspec

from pilotlight.decide.deadline import unsaved
from pilotlight.decide.money.stretch import LATE_S, Ending, stop_s
from pilotlight.errors import Conflict
from pilotlight.facts.capacity import Node
from pilotlight.facts.interruption import Interruption
from pilotlight.flow.books import interruptions
from pilotlight.flow.deps import Deps
from pilotlight.ports import ABSENT


def begin(deps: Deps, node: Node, end: Ending, why: str, now: datetime) -> None:
    """Record it, with an alert: the next look carries it on. One that is at work on the node goes on as it is.

    A stop is orderly even where it begins late: everybody has the time to save and to leave.
    """
    earliest = now + timedelta(seconds=stop_s(node.gpu_pods) - LATE_S)
    deadline = max(end.at - timedelta(seconds=LATE_S), earliest)
    offering = next((o for o in deps.offerings if o.pool == node.pool), None)
    assert offering is not None
    price = offering.usd_per_hour
    found = Interruption(
        cluster=deps.name,
        instance=node.instance or node.name,
        kind=end.kind,
        received_at=now,
        begin=now,
        deadline=deadline,
        pool=node.pool,
        node=node.name,
        ours=True,
        why=why,
        replaced=True,
        lost={pod.uid: unsaved(pod, node, price, deadline) for pod in node.gpu_pods},
    )
    found = msgspec.structs.replace(found, messages=(interruptions.opening(found, len(node.gpu_pods), price, now),))
    try:
        interruptions.write(deps, interruptions.Versioned(found, ABSENT))
    except Conflict:
        return
