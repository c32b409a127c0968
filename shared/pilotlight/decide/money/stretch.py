"""How a node ends in time: until when it is held for, and when it has to be gone.

The cloud's billing steps need no time of their own: what is held up to a moment is what a node costs that ends then,
its last step whole.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from pilotlight.decide.deadline import TICK_S
from pilotlight.decide.money.budget import longest_run, stops
from pilotlight.decide.money.economics import stop_s
from pilotlight.facts.budget import Hold, Terms
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.interruption import StopKind
from pilotlight.facts.policy import DEFAULT_CLASSES, Policy
from pilotlight.facts.workload import WorkloadClass
from pilotlight.units import Seconds

AHEAD_S: Seconds = 5 * TICK_S
"""A stretch is renewed so long before a stop would have to begin."""


def least_s(terms: Terms) -> Seconds:
    """The shortest first stretch: a boot, and the time to stop in order."""
    return terms.boot_s + stop_s()


class Ending(NamedTuple):
    """When a node has to be gone, whether it may be stopped for that, and by which name."""

    at: datetime
    may: bool
    kind: StopKind


def ending(hold: Hold, pods: Iterable[BoundPod], policy: Policy, now: datetime) -> Ending:
    """How a node ends that its budgets hold no further: when what is held ends, or what was promised to its pods.

    A pod that may not be stopped and is owed more than is held runs to its whole end: it is stopped after that.
    """
    found = list(pods)
    at, may, kind = hold.until, True, "hard-cap" if hold.terms.stretch_s else "max-runtime"
    after = timedelta(seconds=stop_s(found))
    for pod in found:
        name = class_of(pod.workload_class) or class_of(hold.terms.workload_class)
        if stops(name, policy):
            continue
        may = may and (pod.max_run_s > 0 or (name is not None and policy.ends(name)))
        promised = (pod.started_at or now) + timedelta(seconds=longest_run(pod.max_run_s, name, policy)[0])
        if promised + timedelta(seconds=stop_s()) > hold.until:
            at, kind = max(at, promised + after), "max-runtime"
    return Ending(at, may, kind)  # type: ignore[arg-type]


def class_of(name: str) -> WorkloadClass | None:
    """A class by its name."""
    return next((known for known in DEFAULT_CLASSES if known == name), None)
