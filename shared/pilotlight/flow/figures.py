"""Pilotlight's own figures of one cluster, out of the state: nothing is asked of cluster or cloud, or written."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from pilotlight.decide.offers.first_work import usual
from pilotlight.errors import PilotlightError
from pilotlight.facts.alerts.figures import Sample
from pilotlight.facts.money.budgets import Spent
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.billing.billing_tick import budget_standings
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import State
from pilotlight.state_schema.alert_records import PROOF, WAITING
from pilotlight.state_schema.billing_records import HOLD, METERED
from pilotlight.state_schema.cluster_records import ISOLATED, PAUSE
from pilotlight.state_schema.decision_records import MEMORY, OPEN
from pilotlight.state_schema.flight_records import IN_FLIGHT
from pilotlight.state_schema.instance_records import RESCUE
from pilotlight.state_schema.marks import SILENT
from pilotlight.state_schema.table import Packed, Table
from pilotlight.units import clock_seconds

COUNTED: Mapping[str, Table[Any] | Packed[Any]] = {
    "pilotlight_holds_open": HOLD,
    "pilotlight_purchases_in_flight": IN_FLIGHT,
    "pilotlight_decisions_open": OPEN,
    "pilotlight_interruptions_open": RESCUE,
}
"""Figures that are how many records there are."""


def of_cluster(deps: Deps) -> Iterator[Sample]:
    """The figures of one cluster. Raises ``Retry`` kinds where the store does not answer."""
    now, name = deps.now(), deps.name
    for spent in budget_standings(deps, now):
        if spent.meter.measure == "usd":
            yield from _budget(name, spent)
    yield from _metered(deps, now)
    for family, table in COUNTED.items():
        yield Sample(family, (name,), sum(1 for _ in table.scan(deps.state, f"{name}/")))
    for pause in PAUSE.scan(deps.state, f"{name}/"):
        yield Sample("pilotlight_paused", (name, pause.name.removeprefix(f"{name}/")), 1)
    yield from _since(deps, now)
    yield from _prices(deps, now)
    yield from _tallied(deps)
    yield from _isolated(deps)


def of_alerts(state: State) -> Iterator[Sample]:
    """The figures of alerts on their way, of every cluster."""
    waiting = Counter(entry.value.channel for entry in WAITING.scan(state))
    gave_up = Counter(entry.value.channel for entry in PROOF.scan(state) if entry.value.status == "gave up")
    for family, counts in (("pilotlight_alerts_waiting", waiting), ("pilotlight_alerts_given_up", gave_up)):
        yield from (Sample(family, (channel,), number) for channel, number in counts.items())


def _budget(cluster: str, spent: Spent) -> Iterable[Sample]:
    labels, limit = (cluster, spent.meter.budget.name), spent.meter.limit
    told = {
        "limit": limit,
        "spent": spent.total,
        "held": spent.held,
        "left": limit - max(spent.held, spent.total),
        "forecast": spent.forecast.likely,
    }
    return [Sample(f"pilotlight_budget_{what}_usd", labels, float(usd)) for what, usd in told.items()]


def _metered(deps: Deps, now: datetime) -> Iterator[Sample]:
    sums: dict[tuple[str, str], Decimal] = {}
    for day in meter_nodes.days(deps.state, deps.name, now.date(), now.date()):
        for line in day.lines:
            whose = (line.pool, line.team or line.kind)
            sums[whose] = sums.get(whose, Decimal(0)) + line.usd
    for (pool, team), usd in sums.items():
        yield Sample("pilotlight_metered_today_usd", (deps.name, pool, team), float(usd))


def _since(deps: Deps, now: datetime) -> Iterator[Sample]:
    silent = SILENT.get(deps.state, deps.name)
    for_s = max(0.0, clock_seconds(now) - float(silent.value.note)) if silent else 0.0
    yield Sample("pilotlight_silent_seconds", (deps.name,), for_s)
    counted = METERED.get(deps.state, deps.name)
    if counted is not None and counted.value.seen is not None:
        yield Sample("pilotlight_counted_timestamp_seconds", (deps.name,), clock_seconds(counted.value.seen))
    try:
        token = deps.credential()
    except PilotlightError:
        token = None
    if token is not None and token.ends is not None:
        yield Sample("pilotlight_credential_ends_timestamp_seconds", (deps.name,), clock_seconds(token.ends))


def _tallied(deps: Deps) -> Iterator[Sample]:
    """Figures that decisions counted, which lie in their memory."""
    found = MEMORY.get(deps.state, deps.name)
    if found is None:
        return
    name, tally = deps.name, found.value.tally
    for phase, seen in tally.durations.items():
        family, labels = ("cycle", (name,)) if phase == "cycle" else ("wait", (name, phase))
        yield Sample(f"pilotlight_{family}_seconds", labels, seen.total_s, seen.counts)
    for call, number in tally.calls.items():
        yield Sample("pilotlight_calls", (name, *call.split("/")), number)
    for kind, number in tally.refusals.items():
        yield Sample("pilotlight_refusals", (name, kind), number)
    for verdict, number in tally.verdicts.items():
        yield Sample("pilotlight_decisions", (name, verdict), number)
    for operation, number in tally.operations.items():
        yield Sample("pilotlight_state_operations", (name, operation), number)
    for pool, rules in deps.policy.pools.items():
        for step, seconds in usual(found.value.first_work, pool, rules.instance_type).known:
            yield Sample("pilotlight_first_work_seconds", (name, pool, step), seconds)
    yield Sample("pilotlight_looks_again", (name,), tally.again)
    yield Sample("pilotlight_pods_taking_homes", (name,), tally.takers)


def _isolated(deps: Deps) -> Iterator[Sample]:
    """Errors that cost one object each."""
    found = ISOLATED.get(deps.state, deps.name)
    for what, number in found.value.counts.items() if found else ():
        kind, _, where = what.partition(" ")
        yield Sample("pilotlight_isolated_errors", (deps.name, kind, where), number)


def _prices(deps: Deps, now: datetime) -> Iterator[Sample]:
    for pool in sorted({offering.pool for offering in deps.offerings}):
        own = [offering for offering in deps.offerings if offering.pool == pool]
        yield Sample("pilotlight_price_usd_per_hour", (deps.name, pool), float(max(one.usd_per_hour for one in own)))
        dated = [one.priced_at for one in own if one.priced_at is not None]
        if dated:
            yield Sample("pilotlight_price_age_seconds", (deps.name, pool), (now - min(dated)).total_seconds())
