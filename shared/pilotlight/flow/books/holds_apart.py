"""Holds that are set apart: nobody moves them on, so they stay held in full, and their nodes end with what is held.

Nothing is settled or freed. A node whose classes may be stopped at a hard cap is stopped in order by the end of what is
held, and an empty one may go then.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from pilotlight.decide.money.budget import stops
from pilotlight.decide.money.economics import calls_s, counted_stop_s
from pilotlight.decide.money.holds import SKEW, TICK, Lit
from pilotlight.decide.money.stretch import Ending, class_of
from pilotlight.decide.rivals import rivals
from pilotlight.facts.budget import Hold
from pilotlight.flow.books import hard_stop
from pilotlight.flow.deps import Deps
from pilotlight.flow.look.snapshot import Snapshot
from pilotlight.state_schema.table import Entry

WHY = "its hold cannot be judged: it stays as it is, and the node ends with it"


def keep(
    deps: Deps, snapshot: Snapshot, every: Iterable[Entry[Hold]], lit: Sequence[Lit]
) -> tuple[list[Lit], dict[str, bool]]:
    """What is lit without the instances of holds that are set apart; and which empty nodes of theirs are to go."""
    apart = _by_instance(deps.set_apart("hold"), [entry.value for entry in every], lit)
    others = rivals(deps.policy, snapshot.view, snapshot.pools, snapshot.now)
    cold: dict[str, bool] = {}
    queue_s = calls_s(len(apart) - 1)
    for one in lit:
        held, node = apart.get(one.instance), one.node
        if held is None or node is None or one.pool in others:
            continue
        stop_s = counted_stop_s(held.terms)
        if held.until - timedelta(seconds=stop_s + queue_s) - 2 * TICK > snapshot.now:
            continue
        cold[node.name] = not one.pods
        if one.pods and _may_stop(deps, held, one):
            end = Ending(held.until, True, "hard-cap", stop_s, stop_s)
            hard_stop.begin(deps, node, end, held.terms.usd_per_hour, WHY, snapshot.now, queue_s)
    unheld = deps.set_apart("hold")
    return [one for one in lit if one.instance not in apart and f"seen.{one.instance}" not in unheld], cold


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


def _may_stop(deps: Deps, hold: Hold, one: Lit) -> bool:
    """Whether a hard budget is there, and all that runs is of classes that it may stop."""
    kinds = [class_of(pod.workload_class) or class_of(hold.terms.workload_class) for pod in one.pods]
    hard = any(budget.hard for budget in deps.policy.budgets)
    return hard and deps.mode_of(one.pool) == "act" and all(stops(kind, deps.policy) for kind in kinds)
