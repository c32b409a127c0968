"""billing_tick: count what nodes cost, see where budgets stand, tell what is odd. Bills are read by billing_import.

Kueue's queues are stopped while a budget's step says that nothing more is bought, and opened again after it: a queue
that admits no more keeps work from waiting with quota that no dollars follow. What runs is left alone. The value from
before is kept on the queue itself, so that it is found again whatever becomes of our state.
"""

import hashlib
import logging
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

from pilotlight.decide.money.budget_ladder import figures
from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.money.counted_days import CountedDays
from pilotlight.decide.money.reconciliation import Correction, corrections
from pilotlight.decide.money.spend import DRIFT_SHARE, budget_spend, drift
from pilotlight.errors import Denied, Retry
from pilotlight.facts.messages import BudgetNotice, Tick
from pilotlight.facts.money.bill import MeterDay
from pilotlight.facts.money.budgets import Spent
from pilotlight.facts.workload import Finding
from pilotlight.flow.answer import Answer, by_fingerprint, tell_once, was_noticed
from pilotlight.flow.billing import billed_days, cost_anomalies, meter_nodes, node_costs, pool_readings
from pilotlight.flow.billing.audit_chain import anchor
from pilotlight.flow.billing.bill_alerts import DAILY_S, NAMED, bill_alert, list_findings
from pilotlight.flow.billing.cloud_budget import cloud_budget
from pilotlight.flow.budgets import budget_accounts, budget_holds, ladder_steps
from pilotlight.flow.deps import Deps, HasBudgets
from pilotlight.ports.cluster import StoppableQueues
from pilotlight.state_schema.marks import NOTICED, Mark
from pilotlight.units import cents, count_of

_log = logging.getLogger("pilotlight.queues")


def billing(deps: Deps, message: Tick | BudgetNotice, *, dry_run: bool = False) -> Answer:
    """Answer one message: a tick or a cloud's notice. A dry run only says where the budgets stand."""
    if dry_run:
        return _answer((), budget_standings(deps, deps.state.now()), None)
    if isinstance(message, BudgetNotice):
        return cloud_budget(deps, message)
    rungs = budget_holds.read_ladder(deps.state, deps.name)
    today = meter_nodes.count(deps)
    pool_readings.count_paid_idle(deps)
    did = (*pool_readings.refresh_prices(deps), *cost_anomalies.watch(deps, today))
    now = deps.state.now()
    did += (*node_costs.file(deps, now), *anchor(deps, now))
    known = billed_days.budget_days(deps, now, today, keep=True)
    if any(pool.canary is not None for pool in deps.policy.pools.values()):
        from pilotlight.flow.billing import canary_check

        before = now.date() - billed_days.DAY
        yesterday = meter_nodes.read_closed(deps.state, deps.name, before, before)
        did += canary_check.watch(deps, [*yesterday.values(), today], now)
    stands = _budget_standings(deps, known, now)
    did += ladder_steps.climb(deps, rungs, stands, now)
    if any(budget.queues for budget in deps.policy.budgets):
        did += stop_queues(deps)
    if deps.policy.asks_for_use:
        did += pool_readings.measure(deps, now)
    if any(rules.reclaim is not None for rules in deps.policy.classes.values()):
        from pilotlight.flow.reclaim import reclaim_owners

        did += reclaim_owners.watch(deps, now)
    if deps.telemetry is not None:
        from pilotlight.flow.billing import waste_alert

        did += waste_alert.watch(deps, now)
    _tell_drift(deps, drift(known), now)
    _tell_learnt(deps, corrections(known.compared), now)
    if today.unpriced:
        _tell_unpriced(deps, today, now)
    return _answer(did, stands, today)


def budget_standings(deps: HasBudgets, now: datetime) -> tuple[Spent, ...]:
    """Where every budget with a period stands, from what the state knows. Reads only the state."""
    return _budget_standings(deps, billed_days.budget_days(deps, now), now)


def _budget_standings(deps: HasBudgets, known: CountedDays, now: datetime) -> tuple[Spent, ...]:
    found = [m for m in meters(deps.policy.budgets, now) if m.end is not None]
    totals = budget_accounts.totals(deps, found)
    return tuple(budget_spend(m, known, totals[m.key], now) for m in found)


def _answer(did: tuple[str, ...], stands: Sequence[Spent], today: MeterDay | None) -> Answer:
    said = [figures(one) for one in stands]
    if today is not None:
        said.insert(0, f"{cents(sum((line.usd for line in today.lines), Decimal(0)))} metered today")
    return Answer(decision="", did=did, why="; ".join(said) or "no budgets with a period")


def _tell_drift(deps: Deps, found: Sequence[Finding], now: datetime) -> None:
    """Days and pools whose bill and meter are apart: those that are new, in one alert.

    One mark says which were looked at last, so that a tick asks for one record and not for each day's.
    """
    if not found:
        return
    seen = hashlib.blake2b("\n".join(map(_drifted, found)).encode(), digest_size=8).hexdigest()
    looked = NOTICED.get(deps.state, f"{deps.name}/drift")
    if looked is not None and looked.value == Mark(note=seen):
        return
    new = [one for one in found if not was_noticed(deps, _drifted(one))]
    if new:
        what = f"bill and meter are apart on {count_of(len(new), 'day')} of pools"
        deps.outbox.publish([by_fingerprint(bill_alert(deps, "bill-drift", what, list_findings(new), now))])
    for one in new:
        NOTICED.put(deps.state, f"{deps.name}/{_drifted(one)}", Mark())
    NOTICED.put(deps.state, f"{deps.name}/drift", Mark(note=seen))


def _tell_learnt(deps: Deps, learnt: Sequence[Correction], now: datetime) -> None:
    """Pools that are billed at another price than the meter's: once for each price. Nothing is moved by it."""
    for one in learnt:
        if abs(one.factor - 1) <= DRIFT_SHARE:
            continue
        name = f"pool {one.pool}" if one.pool else "the cluster"
        what = f"{name} is billed at {one.factor:.2f} of what is metered"
        why = (
            f"{count_of(one.days, 'day')} up to {one.through}: {cents(one.billed)} billed, {cents(one.metered)} metered"
            f"{'; the days say more than is believed' if one.bounded else ''}"
        )
        step = (one.factor / DRIFT_SHARE).to_integral_value() * DRIFT_SHARE
        alert = msgspec.structs.replace(
            bill_alert(deps, "bill-correction", what, why, now),
            fingerprint=f"bill-correction/{one.pool}/{step}",
            next="budgets still count the metered price: set prices.overrides where the bill's is right",
            how="pilotlight bill",
        )
        tell_once(deps, alert)


def _drifted(one: Finding) -> str:
    return f"drift/{one.subject.replace(' ', '-')}"


def _tell_unpriced(deps: Deps, today: MeterDay, now: datetime) -> None:
    names = ", ".join(today.unpriced[:NAMED]) + (", ..." if len(today.unpriced) > NAMED else "")
    one = len(today.unpriced) == 1
    what = f"{len(today.unpriced)} node{' has' if one else 's have'} no known price: {names}"
    why = (
        "their type is not the one that the policy gives their pool, or their pool is not in the policy. They are not "
        "counted as $0: set instance_type, a catalogue or prices.overrides, and all their time is counted"
    )
    tell_once(deps, bill_alert(deps, "unpriced", what, why, now), DAILY_S)


def stop_queues(deps: Deps) -> tuple[str, ...]:
    """Bring every queue that a budget names to where the budget's step puts it. What changed, a line each."""
    named = {queue: budget.name for budget in deps.policy.budgets for queue in budget.queues}
    cluster = deps.cluster
    if not named or not deps.acts or not isinstance(cluster, StoppableQueues):
        return ()
    steps = budget_holds.steps_in_force(deps.state, deps.name)
    stops = {step.budget: step.why for step in steps if step.do == "no-new-buys"}
    stopped = {queue: stops[b.name] for b in deps.policy.budgets if b.name in stops for queue in b.queues}
    done: list[str] = []
    for queue in sorted(named):
        try:
            changed = cluster.stop_queue(queue, stopped.get(queue, ""))
        except (Denied, Retry) as error:
            _log.warning("queue left as it is", extra={"data": {"queue": queue, "why": str(error)}})
            done.append(f"queue {queue} could not be {'stopped' if queue in stopped else 'opened'}: {error}")
            continue
        if changed and queue in stopped:
            done.append(f"queue {queue} admits no more: {stopped[queue]}")
        elif changed:
            done.append(f"queue {queue} is as it was before budget {named[queue]} stopped it")
    return tuple(done)
