"""A real Prometheus reads the figures: dashboards find data, and alerts fire for what was done."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus import Prometheus, needs_prometheus, panels, reading
from stage import START, Stage

from fleet import until
from pilotlight.adapters.state.counted import CountedState
from pilotlight.facts.limits.routes import Caller
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.records import brake_records
from pilotlight.settings import Settings
from pilotlight.tools.serve import own_pages, request_gate
from pilotlight.units import HOUR
from pilotlight.wiring import App, app
from serving import serving

pytestmark = needs_prometheus

TOKEN = "a-token-that-only-reads"
PHASES = ("detect", "decide", "boot", "bind")
TELLS = {"PilotlightPaused", "PilotlightBudgetSpent", "PilotlightBudgetRunsOut"}
UNJUDGED = "Objects that cannot be judged: errors an hour, by object and stage"


def deployment() -> App:
    """A paused cluster, and a budget of a dollar of which two are spent."""
    on = Stage(budgets=(Budget(name="day", usd=Decimal(40), period="day", hard=False),))
    on.deps = replace(on.deps, state=CountedState(on.deps.state))
    on.event(on.submit("a", run_s=6 * HOUR, team="nlp"))
    for _ in range(12):
        on.minutes(10)
        billing(on.deps, Tick(cluster="c", what="billing"))
    brake_records.pause(on.deps.state, "c", "", "trying", START)
    deps = on.deps
    ports: Any = {name: getattr(deps, name) for name in ("cluster", "pools", "state", "outbox", "clock", "policy")}
    # The limit is lowered after the dollars were spent: no purchase passes one.
    lower = msgspec.structs.replace(deps.policy.budgets[0], usd=Decimal(1))
    ports["policy"] = msgspec.structs.replace(deps.policy, budgets=(lower,))
    return app(Settings(cluster="c"), catalog=on.catalog, **ports)


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus that reads the figures of the deployment."""
    callers = {"prometheus": Caller(token=TOKEN, roles=("read",))}
    pages = own_pages.pages(deployment())
    with serving(request_gate.guard_paths(pages, callers)) as port, reading(port, tmp_path, TOKEN) as found:
        yield found


def test_dashboards_find_data_and_alerts_fire(prometheus: Prometheus) -> None:
    """Each query over what this cluster has returns data, and a paused cluster and a spent budget are told."""
    until(lambda: prometheus.firing >= TELLS)
    assert prometheus.firing == TELLS
    waits = prometheus.answers("pilotlight_wait_seconds_count")
    assert {each["metric"]["phase"]: each["value"][1] for each in waits} == dict.fromkeys(PHASES, "1")
    empty = {"Alerts that wait, and that were given up", "Until the token ends", "Dead letters", UNJUDGED}
    for title, query in panels("pilotlight-money", "pilotlight-health").items():
        if title in empty:
            assert not prometheus.answers(query), title
        else:  # A rate is there with the second reading.
            until(partial(prometheus.answers, query))
