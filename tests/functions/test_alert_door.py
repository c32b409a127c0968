"""alert_fanout through the front door: ticks tell what waited, and it starts without what it may never need."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.facts.alerts.channel_policy import Alerts, Channel
from pilotlight.facts.limits.rule_policy import RuleTime
from pilotlight.facts.messages import Alert, Tick
from pilotlight.facts.policy import Policy
from pilotlight.flow.delivery.wake import wake
from pilotlight.settings import Settings
from pilotlight.wiring import app
from pilotlight.world.world_clock import VirtualClock

SAMPLES = Path(__file__).resolve().parents[2] / "events" / "samples" / "pilotlight"


def test_a_tick_for_alerts_tells_what_waited(clock: VirtualClock) -> None:
    """What quiet hours hold back goes out with the first tick after them; a dry run counts it."""
    quiet = RuleTime(start="11:00", end="13:00")
    policy = Policy(version=1, alerts=Alerts(channels={"console": Channel(kind="console", quiet_hours=quiet)}))
    house = app(Settings(), policy=policy, state=MemoryState(clock), outbox=MemoryOutbox(), clock=clock)
    alert = Alert(cluster="local", kind="k", severity="warning", fingerprint="f", what="w", why="y")
    answer = house.receive("alert_fanout", encode(alert, id="1"), {}).body
    assert answer["did"] == ["console: held back: quiet hours until 13:00 UTC"]
    assert answer["look_again_at"] == "2026-11-20T13:00:00Z"
    clock.advance(3600)
    tick = encode(Tick(cluster="local", what="alerts"), id="t")
    assert house.receive("alert_fanout", tick, {}, dryrun=True).body["why"] == "dry run: would tell 1 to console"
    assert house.receive("alert_fanout", tick, {}).body["did"] == ["console: told"]
    assert house.receive("alert_fanout", tick, {}).body["did"] == []


def test_alerts_on_their_way_may_have_a_state_of_their_own(clock: VirtualClock) -> None:
    """Whoever tells alerts writes there and nowhere else, and a look wakes it by what waits there."""
    quiet = RuleTime(start="11:00", end="13:00")
    policy = Policy(version=1, alerts=Alerts(channels={"console": Channel(kind="console", quiet_hours=quiet)}))
    state, alerts, outbox = MemoryState(clock), MemoryState(clock), MemoryOutbox()
    fanout = app(Settings(), policy=policy, state=alerts, alerts=alerts, outbox=outbox, clock=clock)
    looks = app(Settings(), policy=policy, state=state, alerts=alerts, outbox=outbox, clock=clock)
    alert = Alert(cluster="local", kind="k", severity="warning", fingerprint="f", what="w", why="y")
    fanout.receive("alert_fanout", encode(alert, id="1"), {})
    assert list(state.scan("").items) == []
    clock.advance(3600)
    wake(looks.deps)
    assert [(sent.topic, sent.id.rpartition("-")[0]) for sent in outbox.sent] == [("alerts", "alerts-local")]
    assert fanout.receive("alert_fanout", encode(Tick(cluster="local", what="alerts"), id="t"), {}).body["did"] == [
        "console: told"
    ]


def test_a_start_imports_no_client_that_is_not_used(tmp_path: Path) -> None:
    """An alert to the console is told without requests, urllib3, Apprise, Flask's server parts or the command line."""
    script = f"""
import json, sys
from pathlib import Path
from pilotlight.settings import Settings
from pilotlight.wiring import app
answer = app(Settings(state="memory:", outbox="memory:")).receive(
    "alert_fanout", Path({str(SAMPLES / "alert.json")!r}).read_bytes(), {{}})
print(json.dumps([answer.status, sorted(
    {{"requests", "apprise", "urllib3", "typer", "rich", "kubernetes", "boto3", "duckdb"}} & sys.modules.keys())]))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [200, []]


def test_the_same_message_again_is_known_without_the_policy(tmp_path: Path) -> None:
    """A second delivery costs one read, even where the policy has become unreadable since; its like is not."""
    state, outbox, policy = f"sqlite:{tmp_path}/state.db", f"local:{tmp_path}/out", tmp_path / "policy.yaml"
    policy.write_text("version: 1\nalerts: {channels: {console: {kind: console, again_after: 1h}}}")
    settings = Settings(policy=str(policy), state=state, outbox=outbox)
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    alert = Alert(cluster="local", kind="k", severity="warning", fingerprint="f", what="w", why="y", at=noon)
    assert app(settings).receive("alert_fanout", encode(alert, id="1"), {}).body["did"] == ["console: told"]
    later = msgspec.structs.replace(alert, at=noon + timedelta(minutes=1))
    assert app(settings).receive("alert_fanout", encode(later, id="2"), {}).body["did"] == ["console: told before"]
    policy.write_text("version: 2")
    again = app(settings).receive("alert_fanout", encode(alert, id="1"), {})
    assert (again.status, again.body["did"], again.body["why"]) == (200, [], "this alert was taken in before")
    unread = app(settings).receive("alert_fanout", encode(msgspec.structs.replace(alert, why="z"), id="3"), {})
    assert (unread.status, unread.body["error"][:12]) == (500, "not set up: ")
