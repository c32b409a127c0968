"""Pods whose job has a deadline: what may be bought for them now, so that it ends in time at the least expected cost.

``decide.job_deadlines.deadline_capacity`` says which capacity costs least. What keeps a job from being late is reckoned
here in seconds, and rests on no estimate of spot: on-demand is asked for while it can still boot, restore and do all
the work that no checkpoint keeps (ADR 39).

Jobs with a deadline that run on demand and would cost less on spot by now: with a start there, and still in time.

So it is where spot had been away and came back, where the job got on faster than it said, or where its deadline was
moved. It is moved only to room that is ready, and only off a node of its own, once it has saved.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from math import ceil, exp, floor, inf
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.interruption.drain_plan import CORDON_S
from pilotlight.decide.job_deadlines.deadline_capacity import DOWN_S, PRIOR, UP_S, Capacity, Chances, DeadlinePlan
from pilotlight.decide.job_deadlines.job_progress import restore_s, saved_s
from pilotlight.decide.money.economics import works_s
from pilotlight.decide.offers.selection import Candidate, Eligible
from pilotlight.decide.place.provision import Provisioner
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import BoundPod, Node, Offering
from pilotlight.facts.labels import CHECKPOINT_S, DEADLINE
from pilotlight.facts.memory import Memory
from pilotlight.facts.place.pod_verdicts import Code
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Due, PodDemand, PodShape
from pilotlight.units import HOUR, Seconds, UsdPerHour, cents, human

REACT_S: Seconds = 180.0
"""Between the need for on-demand and the request for it: two looks, and a call that is made again."""

SLOWER = 1.5
"""A node may take so many times as long to boot as it is said to."""

TICKS, LEAST_TICK_S = 192, 60.0
"""A job's work is cut into so many steps of a plan; none is shorter."""

MOST_RESTART = 12
"""A start is cut into no more of them than that."""

SLACK_TICKS = 24
"""The slack planned for is rounded up to so many of them, so that looks share a table."""

MOST_SLACK = 2 * TICKS

SAVES = 0.9
"""It goes back where that is expected to cost less than this of going on: a move for cents is none."""


class JobStanding(NamedTuple):
    """Where a job stands: the run it still needs, what a start on on-demand takes, and when that must be asked for."""

    left_s: Seconds
    start_s: Seconds
    latest: datetime

    def needs_on_demand(self, now: datetime) -> bool:
        """True where on-demand is to be asked for now."""
        return now >= self.latest


class Choice(NamedTuple):
    """The capacity that a job runs on next, and why in figures. ``hours`` on demand would cost as much, if known."""

    capacity: Capacity
    why: str
    hours: float = inf


def job_standing(due: Due, sure: Iterable[Candidate], memory: Memory, restart_s: Seconds) -> JobStanding:
    """Where a job stands that may be bought ``sure`` capacity, the slowest to start on of which is reckoned with: no
    sooner than its catalogue says, with the usual image pull.
    """
    left_s = max(0.0, due.work_s - saved_s(memory, due.job))
    new_s = max((max(c.offering.boot_s, works_s(c.offering)) for c in sure), default=0.0)
    start_s = SLOWER * new_s + restart_s
    return JobStanding(left_s, start_s, due.by - timedelta(seconds=left_s + start_s + REACT_S))


def sure_of(able: Eligible) -> list[Candidate]:
    """Candidates that no cloud takes back: those that may be bought now, and those that rest."""
    held = [candidate for candidate, code, _ in able.held if code in ("backoff", "deadline", "price-age")]
    return [c for c in (*able.candidates, *held) if c.offering.capacity_type != "spot"]


def narrow_to_deadline(able: Eligible, shape: PodShape, policy: Policy, memory: Memory, now: datetime) -> Eligible:
    """Offerings that a deadline lets be bought now of those able; the rest is held, with the reason."""
    due, sure = shape.due, sure_of(able)
    if due is None or not (able.candidates or able.held):
        return able
    if not sure:
        code, why = _no_net(able, shape)
        return Eligible((), able.rejected, able.held, finding=(code, why)) if code else able
    spot, away = _spot(able, shape, policy)
    found = job_standing(due, sure, memory, restore_s(0.0))
    choice = choose_for_job(due, found, spot, away, sure, shape.checkpoint_s, now, _away_s(memory, (*spot, *away)))
    paid = [c for c in able.candidates if c.offering.capacity_type == "reserved"]
    ready = [c for c in sure if c in able.candidates]
    use = {"spot": [*paid, *spot], "on-demand": ready or spot, "none": paid}[choice.capacity]
    why = choice.why if shape.checkpoint_s else f"tells no checkpoints ({CHECKPOINT_S}): no spot"
    held = tuple((c, _CODE, why) for c in able.candidates if c not in use)
    again = found.latest if choice.capacity == "none" else None
    certain = choice.capacity == "on-demand" and bool(ready)
    return replace(
        able, candidates=tuple(use), held=(*able.held, *held), why=choice.why, look_again_at=again, sure=certain
    )


_CODE: Code = "deadline"


def _spot(able: Eligible, shape: PodShape, policy: Policy) -> tuple[list[Candidate], list[Candidate]]:
    """Spot that a job may be bought now, and spot that was just refused; none for a job that tells no checkpoints.

    Spot whose pools are too small for the whole gang is nothing to wait for.
    """
    spot = [c for c in able.candidates if c.offering.capacity_type == "spot" and shape.checkpoint_s]
    away = [c for c, _, _ in able.held if c.offering.capacity_type == "spot" and shape.checkpoint_s]
    small = shape.gang and _most(policy, (*spot, *away)) < shape.gang.size
    return ([], []) if small else (spot, away)


def _most(policy: Policy, candidates: Iterable[Candidate]) -> int:
    """Most pods of one shape that pools may ever hold in one zone."""
    zones: dict[str, dict[str, int]] = {}
    for c in candidates:
        zones.setdefault(c.offering.zone, {})[c.offering.pool] = policy.pools[c.offering.pool].max * c.per_node
    return max((sum(pools.values()) for pools in zones.values()), default=0)


def _no_net(able: Eligible, shape: PodShape) -> tuple[Code, str]:
    """Why no deadline can be promised where nothing but spot may be used, unless something else holds the rest back."""
    if any(code != "backoff" for _, code, _ in able.held):
        return "", ""
    key = f"classes.{shape.workload_class}.capacity_types"
    return _CODE, f"{DEADLINE} cannot be promised on spot alone: allow on-demand in {key}, or its fallback"


def choose_for_job(
    due: Due,
    found: JobStanding,
    spot: Sequence[Candidate],
    away: Sequence[Candidate],
    sure: Sequence[Candidate],
    checkpoint_s: Seconds,
    now: datetime,
    away_s: Seconds = DOWN_S,
) -> Choice:
    """The choice for a job that runs nowhere. ``spot`` may be bought now, what is ``away`` was just refused, and
    stays so for ``away_s``."""
    told = f"{found.left_s / HOUR:.1f} h of run left by {due.by:%Y-%m-%d %H:%M} UTC"
    if found.needs_on_demand(now):
        return Choice("on-demand", f"{told}: on-demand now, or it is late")
    if not (spot or away):
        return Choice("on-demand", f"{told}: no spot that it may use")
    price = min(c.rate for c in (spot or away)) / min(c.rate for c in sure)
    if price >= 1:
        return Choice("on-demand", f"{told}: spot is no cheaper")
    start_s = found.start_s + checkpoint_s / 2
    tick_s = max(LEAST_TICK_S, due.work_s / TICKS, start_s / MOST_RESTART)
    # What no checkpoint keeps yet, and our own delay, are kept back; the mean of the former is lost with each start.
    restart = max(1, ceil(round(start_s / tick_s, 6)))
    time_s = (due.by - now).total_seconds() - REACT_S - checkpoint_s
    work, time = ceil(found.left_s / tick_s), floor(time_s / tick_s)
    slack = min(MOST_SLACK, -(-max(0, time - work) // SLACK_TICKS) * SLACK_TICKS)
    rate = min(c.offering.interruptions_per_hour for c in (spot or away))
    plan = _plan(ceil(due.work_s / tick_s), slack, restart, round(float(price), 2), _chances(rate, tick_s, away_s))
    capacity = plan.step(work, time, "none", 0, bool(spot))
    usd = plan.cost(bool(spot), min(work, plan.work), min(max(0, time - work), slack)) * tick_s / HOUR
    why = f"{told}: {_WORDS[capacity]}; {_sums(usd, found, min(c.rate for c in sure))}"
    return Choice(capacity, f"{why}, on-demand at {found.latest:%m-%d %H:%M} at the latest", usd)


_WORDS: dict[Capacity, str] = {
    "spot": "spot costs least",
    "on-demand": "on-demand costs least",
    "none": "waiting for spot costs least",
}


def _sums(on_demand_hours: float, found: JobStanding, rate: UsdPerHour) -> str:
    """Expected dollars of a GPU beside those on on-demand alone."""
    if on_demand_hours == inf:
        return "no estimate"
    alone = Decimal(repr(found.left_s / HOUR)) * rate
    return f"{cents(Decimal(repr(on_demand_hours)) * rate)} a GPU expected, {cents(alone)} on demand"


def _away_s(memory: Memory, spot: Iterable[Candidate]) -> Seconds:
    """Seconds that spot is away, where that was the least: two hours weigh as much as ``PRIOR`` spells seen."""
    known = (memory.lives.get(f"{c.offering.instance_type}/{c.offering.zone}") for c in spot)
    means = [(one.away_h * HOUR + PRIOR * DOWN_S) / (one.away + PRIOR) for one in known if one is not None]
    return min(means, default=DOWN_S)


def _chances(rate: float, tick_s: Seconds, away_s: Seconds) -> Chances:
    """Of one tick: that spot is lost, by its type's rate, and that it comes back."""
    per_s = rate / HOUR if rate > 0 else 1 / UP_S
    return Chances(lost=_within(per_s * tick_s), back=_within(tick_s / away_s))


def _within(expected: float) -> float:
    return round(1 - exp(-expected), 3)


@lru_cache(maxsize=64)
def _plan(work: int, slack: int, restart: int, price: float, chances: Chances) -> DeadlinePlan:
    return DeadlinePlan(work, slack, restart, price, chances)


def infeasible(pod: PodDemand, able: Eligible, memory: Memory, now: datetime) -> str:
    """Why a pod's deadline could not be met when it came, with the earliest that can; empty where it could.

    A job that has run, or whose pod could have been in time when it was made, is never turned away: it goes on at once.
    """
    due, sure = pod.shape.due, sure_of(able)
    if due is None or not sure or due.job in memory.due:
        return ""
    need = timedelta(
        seconds=due.work_s + SLOWER * min(c.offering.boot_s for c in sure) + restore_s(pod.checkpoint_takes_s) + REACT_S
    )
    if pod.created_at + need <= due.by:
        return ""
    earliest = (now + need + timedelta(minutes=2)).replace(second=0, microsecond=0)
    return (
        f"cannot end by {due.by:%Y-%m-%d %H:%M} UTC: {human(due.work_s)} of work and a start of "
        f"{human(need.total_seconds() - due.work_s)} end at {earliest:%Y-%m-%dT%H:%MZ} at the earliest. Set {DEADLINE} "
        "to that or later, or correct the work's seconds"
    )


class Behind(NamedTuple):
    """A spot node with a job on it that is in time only on on-demand, and what a start there takes."""

    node: Node
    why: str
    boot_s: Seconds


def behind(
    nodes: Iterable[Node],
    able: Callable[[PodShape], Eligible],
    memory: Memory,
    now: datetime,
) -> tuple[list[Behind], list[datetime]]:
    """Spot nodes whose work must move to on-demand now, and when that of others must if no checkpoint comes.

    One stays where no on-demand can be had: what runs is better than what waits. ``able`` knows no deadlines.
    """
    found: list[Behind] = []
    later: list[datetime] = []
    for node in nodes:
        for pod in node.gpu_pods if node.capacity_type == "spot" else ():
            due = pod.shape.due if pod.shape else None
            if due is None or pod.shape is None:
                continue
            may = able(pod.shape)
            ready = [c for c in may.candidates if c.offering.capacity_type != "spot"]
            stands = job_standing(due, sure_of(may), memory, restore_s(pod.checkpoint_takes_s))
            if not stands.needs_on_demand(now):
                later.append(stands.latest)
            elif ready:
                why = f"{pod.namespace}/{pod.name} has {stands.left_s / HOUR:.1f} h left by {due.by:%m-%d %H:%M} UTC"
                found.append(Behind(node, f"{why}: on spot it may be late", max(c.offering.boot_s for c in ready)))
                break
    return found, later


def keep_deadlines(work: Work) -> None:
    """Buy for jobs only what keeps their deadline."""
    work.filters = (*work.filters, _in_time)


def refuse_infeasible(work: Work) -> None:
    """Tell of pods that could not meet their deadline when they came; nothing is bought for them."""
    run, late = work.run, []
    for pod in work.view.pending:
        why = infeasible(pod, run.able(run.offerings, pod.shape), run.memory, run.now) if pod.shape.due else ""
        if why:
            run.refuse(pod, why)
            late.append(pod.uid)
    work.infeasible = frozenset(late)


def _in_time(run: Provisioner, able: Eligible, shape: PodShape, offerings: Sequence[Offering]) -> Eligible:
    if shape.due is None:
        return able
    found = narrow_to_deadline(able, shape, run.policy, run.memory, run.now)
    run.wake_at(found.look_again_at)
    return found


class Back(NamedTuple):
    """A node on demand whose job is to go back to spot, and until when that may be."""

    node: Node
    why: str
    until: datetime


def back_to_spot(
    nodes: Iterable[Node], able: Callable[[PodShape], Eligible], memory: Memory, now: datetime
) -> list[Back]:
    """The nodes whose only pod costs less on spot. ``able`` knows no deadlines."""
    found = ((node, _why(node.gpu_pods, able, memory, now)) for node in nodes if _alone(node))
    return [Back(node, why[0], why[1]) for node, why in found if why is not None]


def _alone(node: Node) -> bool:
    """True for a node on demand with one pod that saves when it is asked, and whose job has a deadline."""
    if node.capacity_type != "on-demand" or not node.ready or not node.schedulable or len(node.gpu_pods) != 1:
        return False
    [pod] = node.gpu_pods
    saves = pod.checkpoint_takes_s > 0 and not pod.gang and not pod.blocks
    return saves and pod.shape is not None and pod.shape.due is not None and pod.shape.checkpoint_s > 0


def _why(
    pods: Sequence[BoundPod], able: Callable[[PodShape], Eligible], memory: Memory, now: datetime
) -> tuple[str, datetime] | None:
    [pod] = pods
    if pod.shape is None or pod.shape.due is None:
        return None
    may = able(pod.shape)
    spot, sure = [c for c in may.candidates if c.offering.capacity_type == "spot"], sure_of(may)
    if not spot or not sure:
        return None
    stands = job_standing(pod.shape.due, sure, memory, restore_s(pod.checkpoint_takes_s))
    choice = choose_for_job(pod.shape.due, stands, spot, [], sure, pod.shape.checkpoint_s, now)
    if choice.capacity != "spot" or choice.hours >= SAVES * stands.left_s / HOUR:
        return None
    until = min(now + timedelta(seconds=CORDON_S), stands.latest)
    return f"{pod.namespace}/{pod.name} has {choice.why}", until
