"""Spot economics: what an hour of useful work costs on capacity that is taken back, and who may use such capacity.

Interruptions are taken as exponential, ``rate`` an hour. All times here are hours but where a name says seconds; a run
is the useful work. Sources:

- Young 1974, "A first order approximation to the optimum checkpoint interval", CACM 17 (9): ``best_interval_h``.
- Daly 2006, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22 (3), section 3,
  the complete model: ``stretch``. Without checkpoints the whole run is the interval: (e^(rate x run) - 1) / rate,
  ``expected_h``, and e^(rate x restart) times that where each new start costs a boot.
"""

from collections.abc import Sequence
from decimal import Decimal
from math import exp, expm1, inf, sqrt
from typing import NamedTuple

from pilotlight.decide.money.economics import works_s
from pilotlight.facts.capacity import Offering
from pilotlight.facts.labels import CHECKPOINT_S
from pilotlight.facts.policy import ClassPolicy, Policy
from pilotlight.facts.workload import PodShape
from pilotlight.units import HOUR, MILLI_PER_GPU, Seconds, UsdPerHour, cents, human

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
    """Cost of a useful hour: the price, ``factor`` times as long."""
    return price * Decimal(repr(factor))


def best_interval_h(rate: float, checkpoint_h: float) -> float:
    """The best work between two checkpoints: Young's sqrt(2 C / rate). Without interruptions: never save."""
    return sqrt(2 * checkpoint_h / rate) if rate > 0 else inf


def expected_h(run_h: float, rate: float) -> float:
    """Hours that a run takes which begins anew after each interruption: (e^(rate x run) - 1) / rate."""
    if rate <= 0:
        return run_h
    return expm1(rate * run_h) / rate if rate * run_h <= MOST_EXPONENT else inf


class SpotSafety(NamedTuple):
    """Safety of a run on spot: whether it may use it, and why in figures."""

    safe: bool
    why: str


class TypePrices(NamedTuple):
    """Dollars an hour of one type: as spot, and on demand where that is known."""

    spot: UsdPerHour
    on_demand: UsdPerHour | None

    @property
    def most_stretch(self) -> float:
        """The factor up to which spot costs no more than on demand, and never more than ``MOST_STRETCH``."""
        return MOST_STRETCH if self.on_demand is None else min(MOST_STRETCH, float(self.on_demand / self.spot))

    def sums(self, run_h: float, factor: float) -> str:
        """Costs of a run either way, in words; empty where one side is not known or has no end."""
        if self.on_demand is None or factor == inf:
            return ""
        hours = Decimal(repr(run_h))
        spot = usd_per_useful_hour(self.spot, factor) * hours
        return f": {cents(spot)} on spot with its boots, {cents(self.on_demand * hours)} on demand"


NO_PRICES = TypePrices(Decimal(1), None)


def longest_s(rate: float, restart_s: Seconds, most: float) -> Seconds:
    """The longest run without checkpoints that takes no more than ``most`` times as long, by bisection."""
    short, long = 0.0, MOST_EXPONENT / rate if rate > 0 else inf
    while long < inf and long - short > 1 / HOUR:
        middle = (short + long) / 2
        short, long = (middle, long) if _alone(middle, rate, restart_s) <= most else (short, middle)
    return (short if long < inf else inf) * HOUR


def _alone(run_h: float, rate: float, restart_s: Seconds) -> float:
    """Hours paid for each useful hour of a run without checkpoints."""
    return stretch(rate, run_h, 0, restart_s / HOUR)


def safe_for_spot(
    run_s: Seconds,
    rate: float,
    *,
    prices: TypePrices = NO_PRICES,
    checkpoint_s: Seconds = 0,
    takes_s: Seconds = 60,
    restart_s: Seconds = 600,
    age_s: Seconds | None = 0,
) -> SpotSafety:
    """Safety of a run of ``run_s`` useful seconds that begins where ``rate`` interruptions an hour are expected.

    ``checkpoint_s`` 0 is a run that saves nothing. ``age_s`` is the age of the last checkpoint: None is unknown, and
    unknown or older than the interval means that the checkpoints cannot be trusted. What is safe is expected to cost
    no more than on demand.
    """
    run_h = run_s / HOUR
    if checkpoint_s and (age_s is None or age_s > checkpoint_s):
        known = "unknown" if age_s is None else human(age_s)
        return SpotSafety(False, f"its last checkpoint's age is {known}, its interval {human(checkpoint_s)}")
    if not checkpoint_s:
        factor = _alone(run_h, rate, restart_s)
        figures = (
            f"{run_h:,.1f} h without a checkpoint take {_hours(expected_h(run_h, rate))} at {rate:g} interruptions an "
            f"hour{prices.sums(run_h, factor)}"
        )
        if factor <= prices.most_stretch:
            return SpotSafety(True, figures)
        longest = longest_s(rate, restart_s, prices.most_stretch)
        return SpotSafety(False, f"{figures}; without one only runs up to {human(longest)} are safe")
    factor = stretch(rate, checkpoint_s / HOUR, takes_s / HOUR, restart_s / HOUR)
    best = human(best_interval_h(rate, takes_s / HOUR) * HOUR) if rate > 0 else "never"
    figures = f"a checkpoint every {human(checkpoint_s)} makes {factor:.3f} h of each (best: every {best})"
    return SpotSafety(factor <= prices.most_stretch, figures + prices.sums(run_h, factor))


def _hours(hours: float) -> str:
    return "for ever" if hours == inf else f"{hours:,.0f} expected hours"


def spot_verdict(shape: PodShape, offering: Offering, rules: ClassPolicy) -> SpotSafety:
    """Safety of a pod on a spot offering, with the sum, and what its rate rests on where that was learnt."""
    verdict = safe_for_spot(
        shape.max_run_s or rules.longest_run_s,
        offering.interruptions_per_hour,
        prices=TypePrices(offering.usd_per_hour, offering.on_demand_usd_per_hour),
        checkpoint_s=shape.checkpoint_s,
        restart_s=works_s(offering),
    )
    if offering.survival is None:
        return verdict
    where = f"{offering.instance_type} in {offering.zone}"
    return verdict._replace(why=f"{verdict.why} ({where} is taken {offering.survival})")


def spot_refusal(shape: PodShape, offering: Offering, rules: ClassPolicy) -> str:
    """Why a pod may not use a spot offering, or nothing.

    A run counts as long as the pod's deadline, else its class's ``max_runtime``. One without checkpoints is safe up to
    the length that the rate allows, and where its class asks for checkpoints up to ``require_checkpoint_over``.
    """
    run_s, verdict = shape.max_run_s or rules.longest_run_s, spot_verdict(shape, offering, rules)
    if not verdict.safe:
        annotated = "" if shape.checkpoint_s else f" (annotation {CHECKPOINT_S}, or a shorter activeDeadlineSeconds)"
        return f"not safe on spot: {verdict.why}{annotated}"
    asked_over_s = rules.require_checkpoint_over
    if not shape.checkpoint_s and asked_over_s is not None and run_s > asked_over_s:
        key = f"classes.{shape.workload_class}.require_checkpoint_over"
        return (
            f"not safe on spot: runs up to {human(run_s)} and tells no checkpoints, which {key} asks for over "
            f"{human(asked_over_s)} (annotation {CHECKPOINT_S})"
        )
    return ""


RETURNS_AT = Decimal("0.9")
"""Where a type runs on demand already, spot is gone back to only at so much of its price: no to and fro."""


def retreat(
    shape: PodShape, offering: Offering, on_demand: UsdPerHour, wait: UsdPerHour, *, lit_on_demand: bool
) -> str:
    """Why a pod is bought on demand though it may use a spot offering, or nothing; by learnt rates alone.

    A useful hour on spot costs its price times Daly's factor, and each interruption keeps the job waiting: for a boot,
    and while the work since its last checkpoint is done again, half an interval. ``wait`` is what an hour of that is
    worth, ``on_demand`` the price of such a node on demand.
    """
    if offering.survival is None:
        return ""
    share = Decimal(shape.gpu.total_milli) / (MILLI_PER_GPU * max(1, offering.gpus))
    run_s = shape.checkpoint_s or shape.max_run_s or HOUR
    rate, restart_h = offering.interruptions_per_hour, works_s(offering) / HOUR
    factor = stretch(rate, run_s / HOUR, 0, restart_h)
    if factor == inf:
        return f"on spot it would never end ({offering.instance_type} in {offering.zone} is taken {offering.survival})"
    delayed_h = rate * (restart_h + run_s / HOUR / 2)
    spot = usd_per_useful_hour(offering.compared_usd_per_hour * share, factor) + wait * Decimal(repr(delayed_h))
    most = on_demand * share * (RETURNS_AT if lit_on_demand else 1)
    if spot <= most:
        return ""
    waits, kept = cents(wait * Decimal(repr(delayed_h))), cents(on_demand * share)
    return (
        f"a useful hour costs {cents(spot)} on spot, {waits} of it waits, and {kept} on demand "
        f"({offering.instance_type} in {offering.zone} is taken {offering.survival})"
    )


def without_dear_spot(
    shape: PodShape, free: Sequence[Offering], policy: Policy, lit_on_demand: frozenset[str]
) -> tuple[list[Offering], list[tuple[Offering, str]]]:
    """Offerings that are left once spot that costs more than on demand is not bought, and why each was left out."""
    if not any(o.survival is not None for o in free):
        return [*free], []
    on_demand = {o.instance_type: o.usd_per_hour for o in free if o.capacity_type == "on-demand"}
    wait = policy.wait(shape.workload_class) / (shape.gang.size if shape.gang else 1)
    kept: list[Offering] = []
    left: list[tuple[Offering, str]] = []
    for o in free:
        price = on_demand.get(o.instance_type) if o.capacity_type == "spot" else None
        lit = o.instance_type in lit_on_demand
        why = retreat(shape, o, price, wait, lit_on_demand=lit) if price is not None else ""
        if why:
            left.append((o, why))
        else:
            kept.append(o)
    return kept, left
