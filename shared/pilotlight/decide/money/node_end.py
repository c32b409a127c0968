"""End of a node in time: until when it is held for, and when it has to be gone.

The cloud's billing steps need no time of their own: what is held up to a moment is what a node costs that ends then,
its last step whole.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from pilotlight.decide.money.budget_limits import class_of, longest_run, stops
from pilotlight.decide.money.economics import MOST_CALLS_S, PLAIN_STOP_S, Stopping, counted_stop_s, stop_s
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.interruption.drain_times import TICK_S
from pilotlight.facts.interruption.interruption import StopKind
from pilotlight.facts.money.budgets import Hold
from pilotlight.facts.policy import Policy
from pilotlight.units import Seconds

AHEAD_S: Seconds = 5 * TICK_S
"""A stretch is renewed so long before a stop would have to begin."""


class Ending(NamedTuple):
    """When a node has to be gone, whether it may be stopped for that, and by which name.

    ``stop_s`` is how long before that its stop begins, ``least_s`` what a stop that begins late takes all the same:
    never more than a plain stop, for which every stretch leaves room. ``early_s`` is how much sooner it may begin for
    its turn: a pod that may not be stopped runs to its whole end.
    """

    at: datetime
    may: bool
    kind: StopKind
    stop_s: Seconds
    least_s: Seconds
    early_s: Seconds = MOST_CALLS_S


def ending(hold: Hold, pods: Iterable[BoundPod], policy: Policy, now: datetime) -> Ending:
    """End of a node that its budgets hold no further: when what is held ends, or what was promised to its pods.

    A pod that may not be stopped and is owed more than is held runs to its whole end: it is stopped after that.
    """
    found = list(pods)
    at, may, kind = hold.until, True, "hard-cap" if hold.terms.stretch_s else "max-runtime"
    counted_s = counted_stop_s(hold.terms)
    stops_s, after = stop_within(hold, found), timedelta(seconds=counted_s)
    last: datetime | None = None
    for pod in found:
        name = class_of(pod.workload_class) or class_of(hold.terms.workload_class)
        if stops(name, policy):
            continue
        stops_s = min(stops_s, counted_s)
        may = may and (pod.max_run_s > 0 or (name is not None and policy.ends(name)))
        promised = (pod.started_at or now) + timedelta(seconds=longest_run(pod.max_run_s, name, policy)[0])
        last = max(last or promised, promised)
        if promised + timedelta(seconds=PLAIN_STOP_S) > hold.until:
            at, kind = max(at, promised + after), "max-runtime"
    early_s = max(0.0, (at - last - after).total_seconds()) if last else MOST_CALLS_S
    return Ending(at, may, kind, stops_s, min(stops_s, counted_s, PLAIN_STOP_S), early_s)  # type: ignore[arg-type]


def empty_node_end(hold: Hold, others: Iterable[BoundPod], at: datetime) -> Ending:
    """End of a node without GPU work that its budgets hold no further than ``at``, and on which ``others`` are."""
    return Ending(at, True, "hard-cap", min(stop_s(others), counted_stop_s(hold.terms)), 0)


def stop_within(hold: Hold, pods: Iterable[Stopping]) -> Seconds:
    """Seconds of a stop, by what the pods say now: no more than was counted at the purchase, or half of a stretch.

    Whoever says more when the node is lit has no longer a share of what is held, and stops nobody else sooner.
    """
    return min(stop_s(pods), max(counted_stop_s(hold.terms), hold.terms.stretch_s / 2))
