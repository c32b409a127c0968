"""The one objective, what relighting costs and what a stop takes: all sums the decisions weigh."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol

from pilotlight.facts.capacity import Offering
from pilotlight.facts.interruption.drain_times import MARGIN_S, RETRY_S, TICK_S
from pilotlight.facts.money.budgets import Terms
from pilotlight.units import HOUR, Seconds, Usd, UsdPerHour, per_hour

TYPICAL_RUN_S = 3600.0
"""The run a purchase is judged by where the pod names no shorter deadline."""

CHECKPOINT_S, RESTORE_S = 600.0, 60.0
"""What an interruption costs beside a new boot: half a checkpoint interval, and a restore."""


class Stopping(Protocol):
    """A pod's own words on its end, waiting or running."""

    @property
    def grace_s(self) -> Seconds:
        """Seconds that it may take to stop."""
        ...

    @property
    def checkpoint_takes_s(self) -> Seconds:
        """Seconds that a checkpoint takes that it is asked for."""
        ...


class Billing(Protocol):
    """A cloud's billing of a node: at least a minimum, then whole increments."""

    @property
    def minimum_s(self) -> Seconds:
        """The least that is billed."""
        ...

    @property
    def increment_s(self) -> Seconds:
        """The step it goes up by."""
        ...


def billed_cost(offering: Offering, seconds: Seconds) -> Usd:
    """Cost of a node that lives so long: at least its minimum, then whole increments."""
    return per_hour(offering.usd_per_hour, billed_seconds(offering, seconds))


def billed_seconds(billing: Billing, seconds: Seconds) -> Seconds:
    """The seconds a life of ``seconds`` is billed as."""
    step = billing.increment_s
    return max(billing.minimum_s, -(-seconds // step) * step)


def usd_per_useful_hour(
    offering: Offering,
    pods: int,
    run_s: Seconds,
    idle_tail_s: Seconds,
    throughput: float = 1.0,
    checkpoint_s: Seconds = CHECKPOINT_S,
) -> Decimal:
    """Expected dollars per useful hour of one of ``pods`` equal pods that share a new node.

    The node is paid until a pod works on it, for the run (longer on a slower model, and by what interruptions take
    back) and the idle tail; GPUs that no pod uses are charged to the pods that strand them, because only ``pods`` share
    the bill. First-order interruption model: each costs half a checkpoint interval, a restore and a new node's time to
    work (Daly 2006, eq. 1).
    """
    new_s = works_s(offering)
    lost_s = checkpoint_s / 2 + RESTORE_S + new_s
    run = run_s / throughput * (1 + offering.interruptions_per_hour * lost_s / HOUR)
    life = new_s + run + idle_tail_s
    return billed_cost(offering, life) * 3600 / round(run_s * 1_000_000) * 1_000_000 / pods


def comes_s(offering: Offering) -> Seconds:
    """Seconds from the request to a node that takes pods: as learned, else as the catalogue says."""
    return offering.boot_s if offering.ready_s is None else offering.ready_s


def works_s(offering: Offering) -> Seconds:
    """Seconds from the request until a pod can start on a new node: until it takes pods, and has pulled the images."""
    return comes_s(offering) + offering.pull_s


def break_even_s(boot_s: Seconds, price: UsdPerHour, value_of_wait: Decimal) -> Seconds:
    """The idle time whose cost equals relighting: the boot is paid at ``price``, and a pod waits through it.

    Keeping a node this long and no longer costs at most twice what the best choice in hindsight would have cost
    (ski rental; Karlin et al. 1988). Where a wait is worth nothing it is the boot time itself.
    """
    return boot_s * (1 + float(value_of_wait / price)) if price > 0 else boot_s


def paid_until_s(offering: Offering, age_s: Seconds) -> Seconds:
    """Seconds from a node's launch up to which it is paid already, when it is ``age_s`` old."""
    return billed_seconds(offering, max(age_s, 0.001))


CALL_S: Seconds = 20.0
"""The cloud's call that gives a node back takes so long at most (``ports.clouds.CALL_S``)."""

LATE_S: Seconds = 2 * TICK_S + CALL_S
"""A step is taken at the look after it is due, one look may fail, and the last call takes its time."""

GRACE_S: Seconds = 30.0
"""What a pod takes to stop that nobody knows yet: Kubernetes' default."""


def stop_s(pods: Iterable[Stopping] = ()) -> Seconds:
    """Seconds of an orderly stop from the look that begins it: signal and checkpoint, grace, drain, looks, the call."""
    found = list(pods)
    checkpoint_s = max((pod.checkpoint_takes_s for pod in found), default=0.0)
    grace_s = max((pod.grace_s for pod in found), default=GRACE_S)
    return checkpoint_s + grace_s + RETRY_S + MARGIN_S + LATE_S + TICK_S


def stop_of_one_s(pod: Stopping) -> Seconds:
    """Seconds of an orderly stop of one pod: ``stop_s`` of it alone."""
    return pod.checkpoint_takes_s + pod.grace_s + RETRY_S + MARGIN_S + LATE_S + TICK_S


PLAIN_STOP_S = stop_s()
"""A stop of pods that say nothing of how they stop."""

MOST_CALLS_S: Seconds = HOUR
"""The calls of nodes that end at one moment come one after another: so long before it the first of them at most."""


def calls_s(nodes: int) -> Seconds:
    """Seconds that the calls take that give so many other nodes back first."""
    return min(max(0, nodes) * CALL_S, MOST_CALLS_S)


def queues(ends: Iterable[tuple[str, datetime, bool]]) -> dict[str, Seconds]:
    """Seconds by which each node's call begins sooner than its own end, so that all have their turn: by id.

    ``ends`` are (id, when it has to be gone, whether it works). Of those that end together the empty ones go first.
    """
    out: dict[str, Seconds] = {}
    turn: datetime | None = None
    for id_, at, _ in sorted(ends, key=lambda one: (one[1], one[2], one[0]), reverse=True):
        turn = at if turn is None else min(at, turn - timedelta(seconds=CALL_S))
        out[id_] = min((at - turn).total_seconds(), MOST_CALLS_S)
    return out


def counted_stop_s(terms: Terms) -> Seconds:
    """Seconds that stopping a node takes, as it was counted when the node was bought."""
    return max(PLAIN_STOP_S, terms.stop_s)


def least_s(terms: Terms) -> Seconds:
    """The shortest first stretch: a boot, and the time to stop in order."""
    return terms.boot_s + counted_stop_s(terms)


def after_s(terms: Terms) -> Seconds:
    """Seconds of a node beyond a run: it idles until it is given back, or is stopped in order once the run is over."""
    return max(terms.idle_s, counted_stop_s(terms))
