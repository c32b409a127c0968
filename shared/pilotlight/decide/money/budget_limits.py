"""Limits of a budget: its windows, what a node takes of them, and the figures of a refusal.

A node is bought only when what is held for it fits in every window it touches, beside all that is settled and held
there: its first stretch where its class may be stopped at a hard cap, else all it can cost: price x (boot + longest
run + one idle timeout, or the time that stopping it takes).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.decide.money.economics import (
    PLAIN_STOP_S,
    TYPICAL_RUN_S,
    after_s,
    billed_seconds,
    break_even_s,
    least_s,
)
from pilotlight.facts.capacity import Offering
from pilotlight.facts.money.budgets import Hold, Measure, Meter, Priced, Terms
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import DEFAULT_CLASSES, ClassPolicy, Policy
from pilotlight.facts.workload import WorkloadClass
from pilotlight.units import EPOCH, HOUR, Seconds, Usd, UsdPerHour, cents, human, per_hour

OWN_DEADLINE = "activeDeadlineSeconds"
"""Where the longest run of a pod comes from that names one itself."""

_NOTHING_LEARNED: Mapping[str, Seconds] = {}


def window(budget: Budget, at: datetime) -> tuple[datetime, datetime]:
    """The period around a moment, from its first midnight in the budget's zone to the next one's, in UTC.

    On the days that clocks change a day has 23 or 25 hours.
    """
    from zoneinfo import ZoneInfo

    zone = ZoneInfo(budget.timezone)
    day = at.astimezone(zone).date()
    match budget.period:
        case "day":
            first, then = day, day + timedelta(days=1)
        case "week":
            first = day - timedelta(days=day.weekday())
            then = first + timedelta(days=7)
        case _:
            first = day.replace(day=1)
            then = (first + timedelta(days=31)).replace(day=1)
    return _midnight(first, zone), _midnight(then, zone)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(EPOCH.tzinfo)


def meters(budgets: Sequence[Budget], at: datetime) -> tuple[Meter, ...]:
    """Every limit of the budgets, over the windows around a moment."""
    return tuple(meter for budget in budgets for meter in _meters(budget, at))


def _meters(budget: Budget, at: datetime) -> Iterator[Meter]:
    at_once = budget.period == "hour"
    start, end = (EPOCH, None) if at_once else window(budget, at)
    if budget.usd is not None:
        measure: Measure = "usd_per_hour" if at_once else "usd"
        yield Meter(budget=budget, measure=measure, limit=budget.usd, start=start, end=end)
    if budget.gpu_hours is not None and not at_once:
        yield Meter(budget=budget, measure="gpu_hours", limit=budget.gpu_hours, start=start, end=end)


MOST_WINDOWS = 400
"""Of one limit: more than the days of a year. What would reach further is not followed."""

OLDEST = timedelta(days=32)
"""A node is counted for so long back at most when it is first seen: more than any period."""


def windows(meter: Meter, until: datetime, made: list[Meter] | None = None) -> Iterator[Meter]:
    """A limit's windows from a meter's own up to the one that holds a moment; a rate has one. ``made`` keeps them."""
    made = made or [meter]
    for n in range(MOST_WINDOWS + 1):
        yield (each := made[n])
        if each.end is None or until <= each.end:
            return
        if n + 1 == len(made):
            start, end = window(meter.budget, each.end)
            made.append(msgspec.structs.replace(meter, start=start, end=end))


def life(budgets: Sequence[Budget], hold: Hold, until: datetime) -> tuple[Meter, ...]:
    """Every meter that a node touches which is paid for until a moment: those of all its windows."""
    last, own = paid_until(hold, until), [m for m in meters(budgets, hold.since) if applies(m, hold.terms)]
    return tuple(each for meter in own for each in windows(meter, last))


def applies(meter: Meter, terms: Terms) -> bool:
    """True where a node of such terms counts against a meter."""
    return counts(meter.budget, terms)


def counts(budget: Budget, terms: Terms) -> bool:
    """True where a budget counts a node of such terms."""
    return part_of(budget, terms) > 0


_NONE, _WHOLE = Decimal(0), Decimal(1)
_ROUNDED = Decimal("1e-12")  # More than sums of parts are apart by their last digits.


def part_of(budget: Budget, terms: Terms) -> Decimal:
    """The part of a node of such terms that a budget counts: 1 is all of it."""
    scope, owners = budget.scope, terms.owners
    if not owners or scope == "all" or scope.pool == terms.pool:
        return _WHOLE if in_scope(scope, terms.pool, terms.workload_class, terms.team) else _NONE
    return sum((one.part for one in owners if in_scope(scope, terms.pool, one.workload_class, one.team)), _NONE)


def _part(meter: Meter, hold: Hold) -> Decimal:
    """The part of a node that a meter which counts it takes."""
    return part_of(meter.budget, hold.terms) if hold.terms.owners else _WHOLE


def in_scope(scope: BudgetScope | Literal["all"], pool: str, workload_class: str, team: str) -> bool:
    """True where a scope counts what runs in a pool for a class and a team."""
    if not isinstance(scope, BudgetScope):
        return True
    named = ((scope.team, team), (scope.workload_class, workload_class), (scope.pool, pool))
    return any(wanted is not None and wanted == own for wanted, own in named)


def unpaid(budgets: Iterable[Budget], terms: Terms) -> str:
    """Why nobody pays for a node of such terms, or empty: other teams have hard budgets, and none is of its team or,
    where it is hard, counts it otherwise. Nodes for no team, as spares, are the policy's own."""
    found = [(budget, isinstance(budget.scope, BudgetScope) and budget.scope.team is not None) for budget in budgets]
    if not terms.team or not any(budget.hard and of_team for budget, of_team in found):
        return ""
    if any((budget.hard or of_team) and counts(budget, terms) for budget, of_team in found):
        return ""
    return (
        f"team {terms.team} has no budget, and others have: write default_team (who pays then), or a budget of its own"
    )


def longest_run(max_run_s: Seconds, workload_class: WorkloadClass | None, policy: Policy) -> tuple[Seconds, str]:
    """Longest run of a pod, and where the figure comes from: its own deadline, else its class's.

    A ``max_runtime`` that the policy writes bounds what a pod says of itself. Of a pod nobody knows yet
    (``workload_class`` None) it is the longest of all classes.
    """
    rules = policy.classes.get(workload_class) if workload_class else None
    bound_s = rules.max_runtime if rules is not None else None
    if max_run_s and (bound_s is None or max_run_s <= bound_s):
        return max_run_s, OWN_DEADLINE
    names = [workload_class] if workload_class else list(DEFAULT_CLASSES)
    run_s, name = max((policy.of_class(name).longest_run_s, name) for name in names)
    own = policy.classes.get(name)
    return run_s, f"classes.{name}" + (".max_runtime" if own and own.max_runtime else " has no max_runtime")


def stops(workload_class: WorkloadClass | None, policy: Policy) -> bool:
    """True where a node of a class may be stopped at a hard cap; of one nobody knows yet, where any might be."""
    return all(policy.of_class(name).stops for name in ([workload_class] if workload_class else DEFAULT_CLASSES))


def terms(
    offering: Offering,
    policy: Policy,
    *,
    workload_class: WorkloadClass | None,
    team: str,
    max_run_s: Seconds = 0,
    typical: Mapping[str, Seconds] = _NOTHING_LEARNED,
    stop_s: Seconds = 0,
) -> Terms:
    """Terms that a node of an offering is bought on: pods of one team and class that run so long at most.

    ``typical`` is the median run by class, where one was learned; ``stop_s`` what the pods take to stop. A first
    stretch is never shorter than a boot and that.
    """
    run_s, source = longest_run(max_run_s, workload_class, policy)
    rules = policy.of_class(workload_class or "batch")
    idle_s = _idle_s(offering, policy, workload_class or "batch", rules)
    whole_s = offering.boot_s + run_s + idle_s
    made = Terms(
        pool=offering.pool,
        team=policy.payer(team),
        workload_class=workload_class or "",
        usd_per_hour=offering.usd_per_hour,
        gpus=offering.gpus,
        boot_s=offering.boot_s,
        idle_s=idle_s,
        run_s=run_s,
        run_source=source,
        typical_s=min(run_s, typical.get(workload_class or "", TYPICAL_RUN_S)),
        stop_s=stop_s,
        minimum_s=offering.minimum_s,
        increment_s=offering.increment_s,
    )
    if not stops(workload_class, policy):
        return made
    return msgspec.structs.replace(made, stretch_s=max(min(rules.hold, whole_s), least_s(made)))


def _idle_s(offering: Offering, policy: Policy, name: WorkloadClass, rules: ClassPolicy) -> Seconds:
    pool = policy.pools.get(offering.pool)
    stated = pool.idle_timeout if pool is not None and pool.idle_timeout is not None else rules.idle_timeout
    if stated is not None:
        return stated
    even = break_even_s(offering.boot_s, offering.usd_per_hour, policy.wait(name))
    return min(even, rules.max_idle_timeout)


def open_hold(id_: str, decision: str, terms_: Terms, now: datetime) -> Hold:
    """The hold of a node about to be bought: a pod may bind to it until its boot and one idle timeout are over."""
    binds_until = now + timedelta(seconds=terms_.boot_s + terms_.idle_s)
    until = now + timedelta(seconds=terms_.stretch_s) if terms_.stretch_s else covered_until(terms_, binds_until)
    return Hold(id=id_, decision=decision, terms=terms_, since=now, binds_until=binds_until, until=until)


def covered_until(terms_: Terms, binds_until: datetime) -> datetime:
    """When the longest run that binds at the last moment is over, and its node can be stopped in order and its turn."""
    return binds_until + timedelta(seconds=terms_.run_s + after_s(terms_) - terms_.idle_s + terms_.calls_s)


def held_amount(meter: Meter, hold: Hold) -> Decimal:
    """Amount that a hold takes of a meter: all its node can cost up to its end; of a soft budget, for a typical run."""
    typical = hold.binds_until + timedelta(seconds=hold.terms.typical_s)
    return used_amount(meter, hold, hold.until if meter.budget.hard else typical)


def counted_by(budgets: Sequence[Budget], holds: Iterable[Hold]) -> dict[str, tuple[Meter, list[Hold]]]:
    """The meters that count some of the holds, by key, each with those."""
    out: dict[str, tuple[Meter, list[Hold]]] = {}
    for hold in holds:
        for meter in life(budgets, hold, max(hold.until, hold.binds_until)):
            if held_amount(meter, hold):
                out.setdefault(meter.key, (meter, []))[1].append(hold)
    return out


def latest(meter: Meter, hold: Hold, room: Decimal) -> datetime:
    """The last moment up to which a node takes no more of a meter than ``room``, by the steps in which it is billed.

    The end of the meter's window is as late as it can say: from there on the next window counts.
    """
    part = _part(meter, hold) or _WHOLE
    if meter.end is None:
        return MAX if room / part >= hold.terms.usd_per_hour else hold.since
    room = room if part == _WHOLE else (room - _ROUNDED) / part
    rate, begun = hourly_rate(meter, hold.terms), max(hold.since, meter.start)
    if hold.earlier and meter.measure == "usd":
        at_old_prices = max(begun, hold.earlier[-1].until)
        room -= dollars(hold.earlier, hold.terms.usd_per_hour, begun, at_old_prices)
        begun = at_old_prices
    whole_s = (meter.end - begun).total_seconds()
    seconds = int(min(max(room, Decimal(0)) * 3600 / rate, Decimal(whole_s + 1))) if rate else whole_s
    if seconds >= whole_s:
        return MAX
    lived = (begun - hold.since).total_seconds() + seconds
    if lived < hold.terms.minimum_s:
        return hold.since
    return hold.since + timedelta(seconds=lived // hold.terms.increment_s * hold.terms.increment_s)


MAX = datetime(9000, 1, 1, tzinfo=EPOCH.tzinfo)


def hourly_rate(meter: Meter, own: Terms | Offering) -> Decimal:
    """Amount that an hour of a node takes of a meter."""
    return Decimal(own.gpus) if meter.measure == "gpu_hours" else own.usd_per_hour


def used_amount(meter: Meter, hold: Hold, until: datetime) -> Decimal:
    """Amount that a node takes of a meter that is up until a moment. A rate is taken whole while the node is up."""
    part = _part(meter, hold)
    if meter.end is None:
        return part * hold.terms.usd_per_hour
    begin, end = max(hold.since, meter.start), min(paid_until(hold, until), meter.end)
    if meter.measure == "usd":
        return part * dollars(hold.earlier, hold.terms.usd_per_hour, begin, end)
    return part * per_hour(Decimal(hold.terms.gpus), max(0.0, (end - begin).total_seconds()))


def dollars(earlier: Sequence[Priced], price: UsdPerHour, begin: datetime, end: datetime) -> Usd:
    """Cost of a node from one moment to another, each of them at the price of its time."""
    total = Decimal(0)
    for old in earlier:
        stop = min(max(old.until, begin), end)
        total += per_hour(old.usd_per_hour, max(0.0, (stop - begin).total_seconds()))
        begin = max(begin, stop)
    return total + per_hour(price, max(0.0, (end - begin).total_seconds()))


def paid_until(hold: Hold, until: datetime) -> datetime:
    """Up to when the cloud bills a node that stops at a moment: its least time, and whole steps."""
    step, lived = hold.terms.increment_s, (until - hold.since).total_seconds()
    return hold.since + timedelta(seconds=max(hold.terms.minimum_s, -(-lived // step) * step))


def most(terms_: Terms) -> Usd:
    """All that a node of such terms can cost: its boot, its longest run, one idle timeout or stop, and its turn."""
    whole_s = terms_.boot_s + terms_.run_s + after_s(terms_) + terms_.calls_s
    return per_hour(terms_.usd_per_hour, billed_seconds(terms_, whole_s))


def refusal(meter: Meter, after: Decimal, terms_: Terms, now: datetime) -> str:
    """As "team research: $412.10 of $400.00 a day would be held (...)", naming the run, and a window that is ahead."""
    figures = f"{budget_owner(meter)}: {amount(meter, after).partition(' ')[0]} of {limit(meter)} would be held"
    if meter.end is None:
        return figures
    when = f" in the {meter.budget.period} from {meter.start:%m-%d %H:%M} UTC"
    ahead = when if meter.start > now else ""
    if not meter.budget.hard:
        return f"{figures}{ahead} (a run may take {terms_.typical_s / HOUR:.3g} h: the typical run)"
    slow = f"; its pods need {human(terms_.stop_s)} to stop: {LESS}" if terms_.stop_s > PLAIN_STOP_S else ""
    if terms_.stretch_s and terms_.stretch_s <= least_s(terms_):
        rate = f"{terms_.stretch_s / HOUR:.3g} h at {cents(terms_.usd_per_hour)} an hour"
        return f"{figures}{when} (the node is held for {rate}, a boot of {human(terms_.boot_s)} and its stop{slow})"
    if terms_.stretch_s:
        source = f"in stretches: classes.{terms_.workload_class}.hold"
        return f"{figures}{ahead} (for {terms_.stretch_s / HOUR:.3g} h, {source}{slow})"
    return f"{figures}{ahead} (a run may take {terms_.run_s / HOUR:.3g} h: {terms_.run_source}{slow})"


LESS = "shorten terminationGracePeriodSeconds or pilotlight.dev/checkpoint-takes-seconds"


def budget_owner(meter: Meter) -> str:
    """Whose money it is: "team research", or the name of a budget for all."""
    return str(meter.budget.scope) if isinstance(meter.budget.scope, BudgetScope) else f"budget {meter.budget.name}"


def amount(meter: Meter, figure: Decimal) -> str:
    """A figure of a meter with its unit."""
    return f"{figure:,.1f} GPU-hours" if meter.measure == "gpu_hours" else cents(figure)


def limit(meter: Meter) -> str:
    """A meter's limit with its period: "$400.00 a day"."""
    return f"{amount(meter, meter.limit)} a{'n hour' if meter.end is None else ' ' + meter.budget.period}"


def class_of(name: str) -> WorkloadClass | None:
    """A class by its name."""
    return name if name in DEFAULT_CLASSES else None
