"""Holds that are set apart: nobody moves them on, so they stay held in full, and their nodes end with what is held.

Nothing is settled or freed. A node whose classes may be stopped at a hard cap is stopped in order by the end of what is
held, and an empty one may go then.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal

from pilotlight.decide.money.budget_limits import OLDEST, applies, class_of, hourly_rate, longest_run, stops, terms
from pilotlight.decide.money.economics import calls_s, counted_stop_s
from pilotlight.decide.money.holds import SKEW, TICK, Lit
from pilotlight.decide.money.node_end import Ending, empty_node_end
from pilotlight.errors import Conflict
from pilotlight.facts.capacity import BoundPod, Offering
from pilotlight.facts.money.budgets import Hold, Meter, Terms
from pilotlight.facts.workload import WorkloadClass
from pilotlight.flow.budgets import budget_accounts, budget_stops
from pilotlight.flow.budgets.budget_room import BudgetRoom
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.state_schema.table import Kept
from pilotlight.units import per_hour

LEAST, AN_AGE = Decimal("0.0001"), Decimal(9000)
"""A price of nothing is divided by this; no window is longer than so many hours."""

WHY = "its hold cannot be judged: it stays as it is, and the node ends with it"


def keep(
    deps: Deps, snapshot: Snapshot, every: Iterable[Kept[Hold]], lit: Sequence[Lit]
) -> tuple[list[Lit], dict[str, bool]]:
    """Lit nodes without the instances of holds that are set apart; and which empty nodes of those are to go."""
    entries = {entry.value.id: entry for entry in every}
    apart = _by_instance(deps.set_apart("hold"), [entry.value for entry in entries.values()], lit)
    _give_instances(deps, entries, apart, snapshot.now)
    cold: dict[str, bool] = {}
    queue_s = calls_s(len(apart) - 1)
    for one in lit:
        held, node = apart.get(one.instance), one.node
        if held is None or node is None or snapshot.stays(one.pool, one.instance):
            continue
        stop_s = counted_stop_s(held.terms)
        if held.until - timedelta(seconds=stop_s + queue_s) - 2 * TICK > snapshot.now:
            continue
        stopped = bool(one.pods or node.others) and _may_stop(deps, held, one)
        cold[node.name] = not (one.pods or stopped)
        end = _ending(deps, held, one, snapshot.now)
        if stopped and end.at - timedelta(seconds=stop_s + queue_s) - 2 * TICK <= snapshot.now:
            budget_stops.begin_stop(deps, node, end, held.terms.usd_per_hour, WHY, snapshot.now, queue_s)
    return [one for one in lit if one.instance not in apart], cold


def write_unbought_holds(
    deps: Deps, every: Iterable[Kept[Hold]], lit: Sequence[Lit], limits: Sequence[Meter]
) -> dict[str, Kept[Hold]]:
    """The holds of nodes that nobody bought, where theirs raise before they are written: written plainly.

    Each takes its pool's price up to the end of the first window that counts it, or all the room that is left there:
    nothing new is bought from that.
    """
    names, known = deps.set_apart("hold"), {entry.value.id for entry in every}
    offerings = {offering.pool: offering for offering in deps.offerings}
    missing = [one for one in lit if f"seen.{one.instance}" in names - known and one.pool in offerings]
    found = [_plain(deps, one, offerings[one.pool], limits) for one in missing]
    return {entry.value.id: entry for entry in found}


def _plain(deps: Deps, one: Lit, offering: Offering, limits: Sequence[Meter]) -> Kept[Hold]:
    now, pod = deps.now(), next(iter(one.pods), None)
    kind, team = class_of(pod.workload_class if pod else ""), pod.team if pod else ""
    own = terms(offering, deps.policy, workload_class=kind, team=team)
    counts, room = [meter for meter in limits if applies(meter, own)], BudgetRoom(deps, limits, now)
    ends = [end for meter in counts if (end := _room_ends(meter, own, one, meter.limit - room.total(meter)))]
    until = max(now, min(ends, default=now))
    made = Hold(
        id=f"seen.{one.instance}",
        decision="",
        terms=own,
        since=max(one.earlier or one.since, now - OLDEST),
        binds_until=until,
        until=until,
        instance=one.instance,
        matched_at=now,
    )
    name = f"{deps.name}/{made.id}"
    HOLD.put(deps.state, name, made, over=None)
    entry = budget_accounts.list_in_accounts(deps, Kept(name, made, made), counts)
    for meter in counts:
        takes = _takes(meter, entry.value)
        budget_accounts.extend(deps, entry.value, meter, takes, takes)
    return entry


def _room_ends(meter: Meter, own: Terms, one: Lit, left: Decimal) -> datetime | None:
    """When a limit has no room left for a node; None where it is a rate, or stops nothing."""
    if meter.end is None or not meter.budget.hard:
        return meter.end
    hours = max(Decimal(0), left) / max(hourly_rate(meter, own), LEAST)
    return min(meter.end, max(one.since, meter.start) + timedelta(seconds=int(min(hours, AN_AGE) * 3600)))


def _takes(meter: Meter, hold: Hold) -> Decimal:
    """The amount that a node takes of a limit up to the end of its hold."""
    if meter.end is None:
        return hold.terms.usd_per_hour
    seconds = (min(hold.until, meter.end) - max(hold.since, meter.start)).total_seconds()
    return per_hour(hourly_rate(meter, hold.terms), max(0.0, seconds))


def _by_instance(names: frozenset[str], holds: Sequence[Hold], lit: Sequence[Lit]) -> dict[str, Hold]:
    """The holds that are set apart by their instances; one that has none yet takes the oldest of its pool that is free,
    as it would if it were moved on."""
    found = {hold.instance: hold for hold in holds if hold.id in names and hold.ended_at is None and hold.instance}
    taken = {hold.instance for hold in holds if hold.instance}
    free = sorted((one for one in lit if one.instance not in taken), key=lambda one: one.since)
    waiting = [hold for hold in holds if not hold.instance and hold.ended_at is None]
    for hold in sorted(waiting, key=lambda hold: (hold.since, hold.id)):
        one = next((one for one in free if one.pool == hold.terms.pool and hold.since <= one.since + SKEW), None)
        if one is not None:
            free.remove(one)
            found |= {one.instance: hold} if hold.id in names else {}
    return found


def _give_instances(deps: Deps, entries: Mapping[str, Kept[Hold]], apart: Mapping[str, Hold], now: datetime) -> None:
    """A hold that had no instance is its node's from then on: another node never takes what is held for this one."""
    for instance, hold in apart.items():
        if not hold.instance:
            with suppress(Conflict):  # Another look gave it one: the next one reads that.
                budget_accounts.write_hold(deps, entries[hold.id], instance=instance, matched_at=now)


def _ending(deps: Deps, hold: Hold, one: Lit, now: datetime) -> Ending:
    """The end of what is held; later where a run that may not be stopped is promised more."""
    stop_s = counted_stop_s(hold.terms)
    if one.node is not None and not one.pods:
        return empty_node_end(hold, one.node.others, hold.until)
    promised = [
        (pod.started_at or now) + timedelta(seconds=longest_run(pod.max_run_s, kind, deps.policy)[0] + stop_s)
        for pod in one.pods
        if not stops(kind := _class(hold, pod), deps.policy)
    ]
    at = max([hold.until, *promised])
    return Ending(at, True, "max-runtime" if at > hold.until else "hard-cap", stop_s, stop_s)


def _may_stop(deps: Deps, hold: Hold, one: Lit) -> bool:
    """True where a hard budget is there, and all that runs may be stopped: at a cap, or once its run is over."""
    hard = any(budget.hard for budget in deps.policy.budgets)
    return hard and deps.mode_of(one.pool) == "act" and all(_ends(deps, hold, pod) for pod in one.pods)


def _ends(deps: Deps, hold: Hold, pod: BoundPod) -> bool:
    kind = _class(hold, pod)
    return stops(kind, deps.policy) or pod.max_run_s > 0 or (kind is not None and deps.policy.ends(kind))


def _class(hold: Hold, pod: BoundPod) -> WorkloadClass | None:
    return class_of(pod.workload_class) or class_of(hold.terms.workload_class)
