"""How a node ends in time: what stopping it in order takes, and by when that has to begin.

The cloud's billing steps need no time of their own: what is held up to a moment is what a node costs that ends then,
its last step whole.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from pilotlight.decide.deadline import MARGIN_S, RETRY_S, TICK_S
from pilotlight.decide.money.budget import longest_run, stops
from pilotlight.facts.budget import Hold, Terms
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.interruption import StopKind
from pilotlight.facts.policy import DEFAULT_CLASSES, Policy
from pilotlight.facts.workload import WorkloadClass
from pilotlight.units import Seconds

CALL_S: Seconds = 20.0
"""The cloud's call that gives a node back takes so long at most (``ports.CALL_S``)."""

LATE_S: Seconds = 2 * TICK_S + CALL_S
"""A step is taken at the look after it is due, one look may fail, and the last call takes its time."""

GRACE_S: Seconds = 30.0
"""What a pod takes to stop that nobody knows yet: Kubernetes' default."""

AHEAD_S: Seconds = 5 * TICK_S
"""A stretch is renewed so long before a stop would have to begin."""


def stop_s(pods: Iterable[BoundPod] = ()) -> Seconds:
    """What an orderly stop takes from the look that begins it: signal and checkpoint, grace, drain, looks, the call."""
    found = list(pods)
    checkpoint_s = max((pod.checkpoint_takes_s for pod in found), default=0.0)
    grace_s = max((pod.grace_s for pod in found), default=GRACE_S)
    return checkpoint_s + grace_s + RETRY_S + MARGIN_S + LATE_S + TICK_S


def least_s(terms: Terms) -> Seconds:
    """The shortest first stretch: a boot, and the time to stop in order."""
    return terms.boot_s + stop_s()


class Ending(NamedTuple):
    """When a node has to be gone, whether it may be stopped for that, and by which name.

    ``beyond``: a pod that may not be stopped has bound by itself, and is owed more than is held.
    """

    at: datetime
    may: bool
    kind: StopKind
    beyond: bool


def ending(hold: Hold, pods: Iterable[BoundPod], policy: Policy, now: datetime) -> Ending:
    """How a node ends that its budgets hold no further: when what is held ends, or what was promised to its pods."""
    at, may, kind = hold.until, True, "hard-cap" if hold.terms.stretch_s else "max-runtime"
    beyond = False
    for pod in pods:
        name = class_of(pod.workload_class) or class_of(hold.terms.workload_class)
        if stops(name, policy):
            continue
        may = may and (pod.max_run_s > 0 or (name is not None and policy.ends(name)))
        promised = (pod.started_at or now) + timedelta(seconds=longest_run(pod.max_run_s, name, policy)[0])
        if promised > at:
            at, kind, beyond = promised, "max-runtime", True
    return Ending(at, may, kind, beyond)  # type: ignore[arg-type]


def class_of(name: str) -> WorkloadClass | None:
    """A class by its name."""
    return next((known for known in DEFAULT_CLASSES if known == name), None)
