"""Hours that cost far more than is usual: kept hour by hour, told once a day and pool, with what is behind them."""

from collections.abc import Iterator
from datetime import timedelta

import msgspec

from pilotlight.decide.money import hourly_costs
from pilotlight.errors import Conflict
from pilotlight.facts.messages import Alert
from pilotlight.facts.money.bill import Anomaly, HourCost, HourMark, MeterDay
from pilotlight.flow.answer import tell_once
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.billing_records import ANOMALY, HOUR, HOUR_MARK
from pilotlight.state_schema.decision_records import DECISION
from pilotlight.units import cents, clock_seconds, round_usd

BOUGHT_WITHIN = timedelta(hours=6)
"""A purchase of so long ago may be what an hour's cost comes from."""


def watch(deps: Deps, today: MeterDay) -> tuple[str, ...]:
    """Where an hour has ended, keep what it cost, and tell what is odd of it."""
    found = HOUR_MARK.get(deps.state, deps.name)
    if found is not None and not hourly_costs.hour_ended(found.value, today.until):
        return ()
    odd = _odd(deps, found.value, today) if found is not None else None
    try:
        version = found.version if found is not None else ABSENT
        HOUR_MARK.put(deps.state, deps.name, hourly_costs.mark(today), if_version=version)
    except Conflict:
        return ()  # Another tick has told this hour.
    return (_tell(deps, odd),) if odd is not None else ()


def _odd(deps: Deps, was: HourMark, today: MeterDay) -> Anomaly | None:
    """The anomaly of the hour since the last mark, if it is one; both are kept, so that a repeat finds the same."""
    known = meter_nodes.days(deps.state, deps.name, was.day, today.day, meter_nodes.unmetered_nodes(deps))
    before = [day for day in known if was.day <= day.day < today.day]
    one = hourly_costs.hour(was, [*before, today], today.until)
    if one is None:
        return None
    at = hourly_costs.begins(one)
    same = f"{deps.name}/{at:%H}/"
    past = [entry.value for entry in HOUR.scan(deps.state, same)]
    HOUR.put(deps.state, f"{same}{at:%Y-%m-%d}", one)
    odd = hourly_costs.anomaly(one, past)
    if odd is None:
        return None
    odd = msgspec.structs.replace(odd, decision=_bought(deps, odd))
    ANOMALY.put(deps.state, f"{deps.name}/{at:%Y-%m-%dT%H}", odd)
    return odd


def _bought(deps: Deps, odd: Anomaly) -> str:
    """The last decision that grew the pool before an hour ended; none where it has long been so."""
    since = int(clock_seconds(odd.at - BOUGHT_WITHIN) * 1000)
    last = ""
    for entry in DECISION.scan(deps.state, f"{deps.name}/", after=f"{deps.name}/{since:014d}"):
        grew = any(step.call == "grow" and step.pool == odd.pool for step in entry.value.steps)
        last = entry.value.id if grew and entry.value.at <= odd.at else last
    return last


def _tell(deps: Deps, odd: Anomaly) -> str:
    what = f"an hour cost {cents(odd.usd)}, {cents(odd.usual)} is usual"
    alert = Alert(
        cluster=deps.name,
        kind="spend-anomaly",
        severity="warning",
        fingerprint=f"spend-anomaly/{odd.pool}/{odd.at:%Y-%m-%d}",
        what=what,
        why=hourly_costs.cause(odd),
        next="nothing is stopped by it: budgets are what caps; told once a day for a pool",
        how=f"pilotlight why {odd.decision}" if odd.decision else "pilotlight report",
        usd=str(round_usd(odd.more)),
        at=deps.state.now(),
    )
    tell_once(deps, alert)
    return what


def hours(state: State, cluster: str) -> Iterator[HourCost]:
    """Every hour that is kept."""
    for entry in HOUR.scan(state, f"{cluster}/"):
        yield entry.value
