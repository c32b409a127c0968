"""billing_tick through its front door, on the embedded world: ticks and a cloud's budget as they really arrive."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.codec.policy_file import read_policy
from pilotlight.facts.messages import Tick
from pilotlight.settings import Settings
from pilotlight.tools.serve import tick_schedule
from pilotlight.wiring import App
from pilotlight.world.world_clock import VirtualClock, WallClock

SAMPLES = Path(__file__).resolve().parents[2] / "events" / "samples"
POLICY = b"""
version: 1
pools: {t4: {instance_type: g4dn.xlarge}}
budgets: [{name: all, usd: 100, period: month}]
"""


def app(outbox: MemoryOutbox | None = None) -> App:
    """A deployment of the embedded world with its state in memory."""
    clock = WallClock(datetime.now(UTC))
    return App(
        Settings(),
        state=MemoryState(clock),
        outbox=outbox or MemoryOutbox(),
        clock=clock,
        policy=read_policy(POLICY, "policy"),
    )


def post(to: App, body: bytes, **headers: str) -> dict[str, Any]:
    """What billing_tick answers."""
    answer = to.receive("billing_tick", body, headers)
    assert answer.status == 200
    return answer.body


def test_a_billing_tick_counts_and_says_where_budgets_stand() -> None:
    """The answer has today's dollars, and each budget's."""
    body = encode(Tick(cluster="local", what="billing"), id="t1")
    assert post(app(), body)["why"] == "$0.00 metered today; budget all: $0.00 of $100.00 a month is spent"


def test_googles_budget_notification_is_told_once_a_threshold() -> None:
    """Its sample says that 80 % is spent and 100 % forecast: two alerts, however often it is delivered."""
    sent = MemoryOutbox()
    deployed = app(sent)
    sample = (SAMPLES / "google" / "pubsub_push_budget.json").read_bytes()
    first, *again = [[a["why"] for a in post(deployed, sample)["answers"]] for _ in range(3)]
    name = "the cloud's budget gpu-monthly"
    assert first == [f"{name} has passed 80 %", f"{name} is forecast to pass 100 %"]
    assert again == [["people were told of it already"] * 2] * 2
    assert [message.topic for message in sent.sent] == ["alerts", "alerts"]


def test_the_bill_is_read_without_any_credential_of_the_cluster(tmp_path: Path) -> None:
    """Its kubeconfig and its cloud's token are nowhere, the bill is counted; billing_tick cannot do without."""
    (tmp_path / "focus.csv").write_text(
        "BilledCost,ChargePeriodStart,ChargePeriodEnd,Tags\n"
        '12.34,2026-11-20T00:00:00Z,2026-11-21T00:00:00Z,"{""cluster"": ""c""}"\n'
    )
    (tmp_path / "policy.yaml").write_bytes(POLICY + b"bill: {tags: {cluster: c}}\n")
    clusters = {"c": {"api": "kubeconfig-env:KUBECONFIG_C", "pools": "civo:LON1/1", "token_env": "CIVO_TOKEN_C"}}
    environ = {
        "PILOTLIGHT_POLICY": str(tmp_path / "policy.yaml"),
        "PILOTLIGHT_CLUSTERS": json.dumps(clusters),
        "PILOTLIGHT_BILLS": f"focus:{tmp_path / 'focus.csv'}",
        "PILOTLIGHT_OUTBOX": "memory:",
    }
    clock = VirtualClock(datetime(2026, 11, 22, tzinfo=UTC))
    deployed = App(Settings.from_environ(environ), state=MemoryState(clock), outbox=MemoryOutbox(), clock=clock)
    answer = deployed.receive("billing_import", encode(Tick(cluster="c", what="bills"), id="bills"), {})
    assert answer.body["why"] == "read 1 whole day of focus"
    answer = deployed.receive("billing_tick", encode(Tick(cluster="c", what="billing"), id="billing"), {})
    assert answer.status == 503


def test_serve_ticks_billing_once_an_interval() -> None:
    """Of two workers one ticks; reconcile's tick is another."""
    deployed = app()
    assert tick_schedule.tick_if_due(deployed, 60, "billing") is None
    assert tick_schedule.tick_if_due(deployed, 60, "billing") is not None
    assert tick_schedule.tick_if_due(deployed, 60) is None
