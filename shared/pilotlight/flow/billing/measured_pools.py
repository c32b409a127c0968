"""Pools' GPU utilisation of late, for the policy's rules: written by billing_tick, read by looks, gone when old."""

from collections.abc import Iterable
from datetime import datetime

from pilotlight.decide.utilisation.cluster_use import measure_pool_use
from pilotlight.errors import BadInput, Denied, Retry
from pilotlight.facts.limits.rule_policy import Rule
from pilotlight.facts.utilisation.pool_use import PoolUse
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.billing_records import POOL_USE
from pilotlight.units import Seconds

EVERY_S, OVER_S, STEP_S = 240.0, 1800.0, 60.0


def asks_for_utilisation(rules: Iterable[Rule]) -> bool:
    """True where a rule asks for utilisation."""
    return any(r.when.utilisation_below is not None or r.when.utilisation_above is not None for r in rules)


def measure(deps: Deps, now: datetime) -> tuple[str, ...]:
    """Read and keep it, where that is due; a line where it cannot be read: rules then go by what pods hold."""
    entry = POOL_USE.get(deps.state, deps.name)
    if deps.telemetry is None or (entry is not None and _age_s(entry.value, now) < EVERY_S):
        return ()
    try:
        read = deps.telemetry.read(now.timestamp() - OVER_S, now.timestamp(), STEP_S)
    except (Retry, Denied, BadInput) as error:
        return (f"telemetry: absent: rules go by what pods hold: {error}",)
    POOL_USE.put(deps.state, deps.name, measure_pool_use(read, deps.observe().nodes, now))
    return ()


def _age_s(use: PoolUse, now: datetime) -> Seconds:
    return (now - use.at).total_seconds()
