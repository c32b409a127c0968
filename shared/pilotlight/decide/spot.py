"""Spot economics: what an hour of useful work costs on capacity that is taken back, and who may use such capacity.

Interruptions are taken as exponential, ``rate`` an hour. All times here are hours but where a name says seconds; a run
is the useful work. Sources:

- Young 1974, "A first order approximation to the optimum checkpoint interval", CACM 17 (9): ``best_interval_h``.
- Daly 2006, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22 (3), section 3,
  the complete model: ``stretch``.
"""

from collections.abc import Mapping
from decimal import Decimal
from math import exp, expm1, inf, sqrt
from typing import Literal, NamedTuple

from pilotlight.facts.labels import CHECKPOINT_S
from pilotlight.facts.policy import ClassPolicy
from pilotlight.facts.workload import PodShape
from pilotlight.units import HOUR, Seconds, Usd, UsdPerHour, human

MOST_STRETCH = 2.0
"""A run that takes more than twice its length is no bargain at any usual discount (60 to 70 %)."""

MOST_EXPONENT = 700.0
"""Beyond it ``exp`` overflows: such a run never ends."""


def stretch(rate: float, interval_h: float, checkpoint_h: float, restart_h: float) -> float:
    """Hours paid for each useful hour, with a checkpoint of ``checkpoint_h`` after every ``interval_h`` of work.

    Daly's complete model: (1 / (rate x interval)) x e^(rate x restart) x (e^(rate x (interval + checkpoint)) - 1).
    """
    if rate <= 0:
        return 1 + checkpoint_h / interval_h
    exponent = rate * (interval_h + checkpoint_h)
    if exponent + rate * restart_h > MOST_EXPONENT:
        return inf
    return exp(rate * restart_h) * expm1(exponent) / (rate * interval_h)


def usd_per_useful_hour(price: UsdPerHour, factor: float) -> UsdPerHour:
    """What a useful hour costs: the price, ``factor`` times as long."""
    return price * Decimal(repr(factor))


def best_interval_h(rate: float, checkpoint_h: float) -> float:
    """The best work between two checkpoints: Young's sqrt(2 C / rate). Without interruptions: never save."""
    return sqrt(2 * checkpoint_h / rate) if rate > 0 else inf


def expected_h(run_h: float, rate: float) -> float:
    """Hours that a run takes which begins anew after each interruption: (e^(rate x run) - 1) / rate."""
    if rate <= 0:
        return run_h
    return expm1(rate * run_h) / rate if rate * run_h <= MOST_EXPONENT else inf


class SpotCase(NamedTuple):
    """Dollars over one interval between interruptions: the work lost, and what spot saves against on-demand."""

    lost: Usd
    saved: Usd

    @property
    def net(self) -> Usd:
        """The saving less the loss."""
        return self.saved - self.lost

    @property
    def kept(self) -> Decimal:
        """The share of the saving that is kept."""
        return self.net / self.saved


def spot_case(
    on_demand: UsdPerHour, spot: UsdPerHour, between_h: Decimal, lost_h: Decimal, restart_h: Decimal = Decimal(0)
) -> SpotCase:
    """One node, one interruption after ``between_h``: the work since the last checkpoint and the restart are lost.

    ``lost_h`` is half the checkpoint interval. With $32.77 and $12.50, 4 h and 15 min it keeps 96.15 % of the saving.
    """
    return SpotCase(lost=spot * (lost_h + restart_h), saved=(on_demand - spot) * between_h)


def spot_case_as_printed() -> SpotCase:
    """The course module's case as printed: 99.5 % kept. Its units are wrong; nothing of ours is worked out by it.

    The saving is that of 8 nodes ($32.77 and $12.50 are per 8-GPU node, multiplied by "8 A100" again), the lost work
    that of 2 GPUs at $1.56 for a quarter of an hour, rounded.
    """
    return SpotCase(lost=Decimal("3.12"), saved=(Decimal("32.77") - Decimal("12.50")) * 8 * 4)


class Verdict(NamedTuple):
    """Whether a run may use spot, and why in figures."""

    safe: bool
    why: str


def safe_for_spot(
    run_s: Seconds,
    rate: float,
    *,
    checkpoint_s: Seconds = 0,
    takes_s: Seconds = 60,
    restart_s: Seconds = 600,
    age_s: Seconds | None = 0,
) -> Verdict:
    """Whether a run of ``run_s`` useful seconds is worth beginning where ``rate`` interruptions an hour are expected.

    ``checkpoint_s`` 0 is a run that saves nothing. ``age_s`` is the age of the last checkpoint: None is unknown, and
    unknown or older than the interval means that the checkpoints cannot be trusted.
    """
    run_h = run_s / HOUR
    if checkpoint_s and (age_s is None or age_s > checkpoint_s):
        known = "unknown" if age_s is None else human(age_s)
        return Verdict(False, f"its last checkpoint's age is {known}, its interval {human(checkpoint_s)}")
    if not checkpoint_s:
        hours = expected_h(run_h, rate)
        figures = f"{run_h:,.1f} h without a checkpoint take {_hours(hours)} at {rate:g} interruptions an hour"
        return Verdict(hours <= MOST_STRETCH * run_h, figures)
    factor = stretch(rate, checkpoint_s / HOUR, takes_s / HOUR, restart_s / HOUR)
    best = human(best_interval_h(rate, takes_s / HOUR) * HOUR) if rate > 0 else "never"
    figures = f"a checkpoint every {human(checkpoint_s)} makes {factor:.3f} h of each (best: every {best})"
    return Verdict(factor <= MOST_STRETCH, figures)


def _hours(hours: float) -> str:
    return "for ever" if hours == inf else f"{hours:,.0f} expected hours"


def spot_refusal(shape: PodShape, rate: float, boot_s: Seconds, rules: ClassPolicy) -> str:
    """Why a pod may not use spot capacity, or nothing.

    Asked only where the pod tells its checkpoints, or its class wants that of runs over ``require_checkpoint_over``.
    """
    run_s = shape.max_run_s or rules.longest_run_s
    longest_s = rules.require_checkpoint_over
    if not shape.checkpoint_s and (longest_s is None or run_s <= longest_s):
        return ""
    verdict = safe_for_spot(run_s, rate, checkpoint_s=shape.checkpoint_s, restart_s=boot_s)
    if not verdict.safe:
        return f"not safe on spot: {verdict.why}"
    if not shape.checkpoint_s and longest_s is not None:
        key = f"classes.{shape.workload_class}.require_checkpoint_over"
        return (
            f"not safe on spot: runs up to {human(run_s)} and tells no checkpoints, which {key} asks for over "
            f"{human(longest_s)} (annotation {CHECKPOINT_S})"
        )
    return ""


class Friendliness(NamedTuple):
    """How well a kind of work bears spot, and on what condition."""

    verdict: Literal["excellent", "yes", "risky", "no"]
    condition: str


FRIENDLINESS: Mapping[str, Friendliness] = {
    "training": Friendliness("yes", "with durable checkpoints whose restore is tested"),
    "hyperparameter-search": Friendliness("excellent", "trials are short and alone; a lost one is drawn again"),
    "batch": Friendliness("yes", "items that can be done again"),
    "preprocessing": Friendliness("yes", "items that can be done again"),
    "serving": Friendliness("no", "an interruption is an outage"),
    "notebook": Friendliness("risky", "a person's state is in memory"),
}
"""The course module's table of workloads. Of our classes serving never runs on spot, whatever a policy allows; the
others do where the policy's ``capacity_types`` name it, and by default none does."""


class Answers(NamedTuple):
    """The five questions of the course module's decision tree, in their order."""

    interruptible: bool
    restorable: bool
    shared_fairly: bool
    queued: bool
    only_nodes: bool


Advice = Literal["on-demand or reserved", "fix resilience first", "spot with Kueue", "Karpenter only", "spot"]


def advised(answers: Answers) -> Advice:
    """Where work belongs.

    1. May it be interrupted? No: on-demand or reserved. 2. Can it be restored? No: fix resilience first.
    3. Do teams share the GPUs by quota, 4. or do jobs wait for each other? Then spot with Kueue.
    5. Is making nodes all that is wanted? Karpenter alone does; else spot pools under this policy.
    """
    if not answers.interruptible:
        return "on-demand or reserved"
    if not answers.restorable:
        return "fix resilience first"
    if answers.shared_fairly or answers.queued:
        return "spot with Kueue"
    return "Karpenter only" if answers.only_nodes else "spot"
