"""Canaries: each tick compares them with their controls, and pauses one that has passed a bound."""

from collections.abc import Iterable
from datetime import datetime

from pilotlight.decide.limits.canary import Side, passed_bound, side
from pilotlight.facts.messages import Alert
from pilotlight.facts.money.bill import MeterDay
from pilotlight.flow.alerts.decision_messages import send
from pilotlight.flow.answer import alert_out
from pilotlight.flow.deps import Deps, HasBudgets
from pilotlight.flow.records import brake_records, flight_log, ledger
from pilotlight.state_schema.cluster_records import PAUSE

DAYS = 2
"""Today and yesterday are compared."""


def watch(deps: Deps, days: Iterable[MeterDay], now: datetime) -> tuple[str, ...]:
    """Pause what has passed a bound, so that it only advises from its next call on. What was done."""
    did: list[str] = []
    recent = [day for day in days if (now.date() - day.day).days < DAYS]
    for name, rules in deps.policy.pools.items():
        if rules.canary is None or PAUSE.get(deps.state, f"{deps.name}/{name}") is not None:
            continue
        canary, control = sides(deps, (name, rules.canary.control), recent, now)
        why = passed_bound(canary, control, rules.canary)
        if why:
            brake_records.pause(deps.state, deps.name, name, f"canary: {why}", now, by="canary")
            _tell(deps, name, why, now)
            did.append(f"{name} advises only from now on: {why}")
    return tuple(did)


def sides(deps: HasBudgets, pools: Iterable[str], days: Iterable[MeterDay], now: datetime) -> list[Side]:
    """The figures of pools, from the state alone."""
    memory = ledger.recall(deps.state, deps.name).memory
    flights = [entry for _, entry in flight_log.in_flight(deps.state, deps.name)]
    metered = list(days)
    return [side(pool, metered, flights, memory.backoffs, now) for pool in pools]


def _tell(deps: Deps, pool: str, why: str, now: datetime) -> None:
    alert = Alert(
        cluster=deps.name,
        kind="canary-over",
        severity="warning",
        fingerprint=f"canary-over/{pool}/{now:%Y-%m-%dT%H:%M}",
        what=f"pool {pool} is acted on no more: as a canary it passed a bound",
        why=why,
        next="it decides and tells, and nothing is bought or given back in it; what runs goes on",
        how=f"pilotlight shadow canary, then pilotlight resume --pool {pool}",
        at=now,
    )
    send(deps, (alert_out(alert, f"{deps.name}-canary-{pool}-{now:%Y%m%d%H%M}"),))
