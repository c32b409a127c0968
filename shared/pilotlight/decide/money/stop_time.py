"""What it takes to stop a node in order."""

from collections.abc import Iterable

from pilotlight.decide.deadline import MARGIN_S, RETRY_S, TICK_S
from pilotlight.facts.budget import Terms
from pilotlight.facts.capacity import BoundPod
from pilotlight.units import Seconds

CALL_S: Seconds = 20.0
"""The cloud's call that gives a node back takes so long at most (``ports.CALL_S``)."""

LATE_S: Seconds = 2 * TICK_S + CALL_S
"""A step is taken at the look after it is due, one look may fail, and the last call takes its time."""

GRACE_S: Seconds = 30.0
"""What a pod takes to stop that nobody knows yet: Kubernetes' default."""


def stop_s(pods: Iterable[BoundPod] = ()) -> Seconds:
    """What an orderly stop takes from the look that begins it: signal and checkpoint, grace, drain, looks, the call."""
    found = list(pods)
    checkpoint_s = max((pod.checkpoint_takes_s for pod in found), default=0.0)
    grace_s = max((pod.grace_s for pod in found), default=GRACE_S)
    return checkpoint_s + grace_s + RETRY_S + MARGIN_S + LATE_S + TICK_S


def after_s(terms: Terms) -> Seconds:
    """What a node takes beyond a run: it idles until it is given back, or is stopped in order once the run is over."""
    return max(terms.idle_s, stop_s())
