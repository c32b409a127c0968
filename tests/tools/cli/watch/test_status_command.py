"""pilotlight status: a cluster at a glance, and an exit code that says whether it needs a person."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from both_ways import served
from rich.console import Console
from small_cloud import world
from stage import Stage
from typer.testing import CliRunner, Result

from pilotlight.errors import BadInput, Unavailable
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.decisions import Plan
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.facts.memory import Backoff
from pilotlight.facts.messages import Alert, Tick
from pilotlight.facts.money.bill import Bill
from pilotlight.facts.money.money_policy import ApproveOver, Budget, Caps
from pilotlight.facts.workload import Finding
from pilotlight.flow.billing.billing_import import billing_import
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import brake_records, ledger
from pilotlight.ports.state import State
from pilotlight.settings import Settings
from pilotlight.state_schema.alert_records import PROOF
from pilotlight.state_schema.decision_records import MEMORY
from pilotlight.state_schema.instance_records import INTERRUPTION
from pilotlight.tools.cli.main import build
from pilotlight.tools.cli.watch import status_command
from pilotlight.tools.glance.glance import Glance
from pilotlight.tools.glance.look_at_cluster import glance, of_plan
from pilotlight.tools.report.texts.glance_text import lines
from pilotlight.tools.report.texts.why_text import FATE
from pilotlight.tools.serve import live
from pilotlight.wiring import App

QUICK = """
from pilotlight.tools.cli.watch import status_command
status_command.EVERY_S = 0.1
from pilotlight.tools.cli.entry import run
run()
"""
"""The command line with less time between looks."""


class Unasked:
    """A bill that nobody can read."""

    def read(self, start: datetime, end: datetime) -> Bill:
        """No."""
        raise Unavailable("no bill yet")


class Site(NamedTuple):
    """What a glance needs of a deployment."""

    deps: Deps
    alerts: State


def seen(on: Stage, **deps: Any) -> Glance:
    """A glance at a stage."""
    return glance(Site(replace(on.deps, **deps), on.deps.state))  # type: ignore[arg-type]


def ticked(on: Stage, ago_s: float = 30.0) -> None:
    """Both functions tick, and then nobody for a while."""
    on.tick()
    billing(on.deps, Tick(cluster="c", what="billing"))
    on.wait(ago_s)


def shown(of: Glance) -> str:
    """What people read."""
    console = Console(width=160)
    with console.capture() as captured:
        for line in lines(of):
            console.print(line)
    return captured.get()


def test_a_cluster_at_work_needs_nobody() -> None:
    """A node is lit with its price and why it is kept, a pod waits for a boot, the budget has room."""
    on = Stage(budgets=(Budget(name="all", usd=Decimal(1000)),))
    on.event(on.submit("a", run_s=7200))
    on.minutes(10)
    on.event(on.submit("b", gpus=8, gpu_models=("A100",)))
    ticked(on)
    found = seen(on)
    assert found.needs == ()
    assert [(n.pool, str(n.usd_per_hour), n.verdict) for n in found.nodes] == [
        ("one", "1", "keep"),
        ("eight", "32", "boots"),
    ]
    assert [(w.first, w.verdict) for w in found.waiting] == [("ml/b", "booting")]
    assert (str(found.usd_per_hour), found.held, found.letters) == ("33", 2, None)
    assert found.budgets[0].left < 1000
    text = shown(found)
    for said in (
        "mode act",
        "capacity_reconcile 30 s ago",
        "lit: 1 node, 1 on its way, $33.00/h",
        "node on its way: ml/b",
        "2 holds",
    ):
        assert said in text


def test_a_lit_node_of_unknown_price_is_not_counted_as_free() -> None:
    """The sum is a least, and says of how many nodes it knows nothing."""
    on = Stage()
    on.event(on.submit("a", run_s=7200))
    on.minutes(10)
    on.event(on.submit("b", gpus=8, gpu_models=("A100",)))
    found = seen(on, offerings=())
    assert (len(found.nodes), found.unpriced) == (2, 2)
    assert "lit: 1 node, 1 on its way, at least $0.00/h, 2 nodes of unknown price" in shown(found)


def test_the_bills_function_says_when_it_last_looked() -> None:
    """Read, unread, or as it was: a minute ago. Where no bill is set up it has nothing to do, and nothing is said."""
    for bills, ages in ((Unasked(), {60.0}), (None, set())):
        on = Stage()
        on.deps = replace(on.deps, bills=bills)
        billing_import(on.deps, Tick(cluster="c", what="bills"))
        on.wait(60)
        assert {tick.age_s for tick in seen(on).ticks if tick.function == "billing_import"} == ages


def test_pods_whose_node_nobody_has_asked_for_yet_are_not_called_bought() -> None:
    """The words of the live page: a look has bought nothing, and what waits for a person is to be mended."""
    on = Stage()
    on.submit("a", run_s=7200)
    on.submit("b", gpus=8, gpu_models=("H100",))
    text = shown(seen(on))
    assert "  to be bought: ml/a [one/" in text
    assert "  to mend: ml/b: " in text
    page = Path(live.__file__).with_name("live.html").read_text("utf-8")
    assert all(f'{verdict}: "{words}"' in page for verdict, words in FATE.items())


def test_a_pod_whose_gpus_cannot_be_read_needs_a_person() -> None:
    """It waits in no group, and is said by its name with what is wrong."""
    on = Stage()
    bad = Finding(subject="ml/bad", code="bad-quantity", message="asks for 1.5 nvidia.com/gpu", uid="u")
    site: Any = Site(on.deps, on.deps.state)
    made = of_plan(site, on.deps.state.now(), Plan(findings=(bad,)), "", (), ())
    assert made.needs[-1] == "ml/bad: asks for 1.5 nvidia.com/gpu"


def test_each_function_says_when_it_last_worked() -> None:
    """By what it left behind; of those that only work when something comes nobody is asked for."""
    on = Stage()
    ticked(on)
    before = {tick.function: tick.age_s for tick in seen(on).ticks}
    assert before == {
        "capacity_reconcile": 30.0,
        "billing_tick": 30.0,
        "pod_pending": None,
        "spot_interruption": None,
        "alert_fanout": None,
    }
    assert (seen(on).needs, "alert_fanout not yet" in shown(seen(on))) == ((), True)
    on.event(on.submit("a", run_s=7200))
    now = on.deps.state.now()
    taken = Interruption(cluster="c", instance="i-1", kind="rebalance", received_at=now, begin=now, outcome="gone")
    INTERRUPTION.put(on.deps.state, "c/i-1", taken)
    alert = Alert(cluster="c", kind="k", severity="info", fingerprint="f", what="w", why="y")
    PROOF.put(on.deps.state, "c/ops/1", Telling(channel="ops", alert=alert, status="told", since=now, at=now))
    on.wait(60)
    ticked(on, ago_s=0)
    assert [(tick.function, tick.age_s) for tick in seen(on).ticks][2:] == [
        ("pod_pending", 60.0),
        ("spot_interruption", 60.0),
        ("alert_fanout", 60.0),
    ]


def test_what_waits_for_approval_is_all_that_the_decision_asks_for() -> None:
    """What ``approve`` would allow, whatever the look of this moment would ask for."""
    on = Stage(caps=Caps(approve_over=ApproveOver(usd_per_hour=Decimal(1))))
    pods = [on.submit(name, gpus=8, gpu_models=("A100",)) for name in ("first", "second")]
    on.event(pods[1])
    [(decision, held)] = [(r.id, r.plan.held) for r in ledger.filed_records(on.deps.state, "c") if r.plan.held]
    on.submit("third", gpus=8, gpu_models=("A100",))
    [asked] = seen(on).approvals
    assert (asked.nodes, asked.decision) == (sum(one.count for one in held), decision)
    assert asked.nodes == 2


def test_what_needs_a_person_is_said_first_with_what_to_do() -> None:
    """An approval by its decision, a pod that gets no node, a function that stands still, an event that was refused."""
    on = Stage(caps=Caps(approve_over=ApproveOver(usd_per_hour=Decimal(10))))
    on.event(on.submit("big", gpus=8, gpu_models=("A100",)))
    on.event(on.submit("odd", gpus=16, gpu_models=("A100",)))
    on.minutes(1)
    ticked(on, ago_s=1200)
    needs = seen(on).needs
    assert [any(text in need for need in needs) for text in (
        "capacity_reconcile has not ticked for 20 min", "1 of pool eight wait for approval", "ml/odd will get no node",
    )] == [True] * 3, needs  # fmt: skip
    decision = next(need for need in needs if "approve" in need).rpartition(" ")[2]
    brake_records.approve(on.deps.state, "c", decision, {"eight": 1}, on.deps.state.now())
    on.minutes(1)
    assert not any("wait for approval" in need for need in seen(on).needs)


def test_a_pause_says_by_whom_and_needs_nobody() -> None:
    """Somebody wished it; how to take it back is beside it."""
    on = Stage()
    ticked(on)
    brake_records.pause(on.deps.state, "c", "one", "price check", on.world.clock.now(), "ada")
    found = seen(on)
    assert found.needs == ()
    assert "paused: pool one since 11-20 12:00 by ada: price check; pilotlight resume --pool one" in shown(found)


def test_an_offering_that_rests_is_shown() -> None:
    """Until when, and why."""
    on = Stage()
    ticked(on)
    at = on.world.clock.now()
    rest = Backoff(offering="one@z", until=at.replace(hour=13), why="no capacity")
    MEMORY.change(on.deps.state, "c", lambda was: type(was)(backoffs=(rest,)) if was else None)  # type: ignore[arg-type,return-value]
    assert "resting until 13:00:30: one@z: no capacity" in shown(seen(on))


def test_a_cluster_that_does_not_answer_still_shows_what_the_state_knows() -> None:
    """Nodes are not known, which needs a person; budgets are."""

    class Gone:
        def __getattr__(self, name: str) -> Any:
            raise Unavailable("the API server does not answer")

    on = Stage(budgets=(Budget(name="all", usd=Decimal(1000)),))
    ticked(on)
    found = seen(on, cluster=Gone())
    assert found.needs[0].startswith("cluster and cloud cannot be looked at: the API server does not answer")
    assert (found.nodes, [one.budget for one in found.budgets]) == ((), ["all"])
    assert "lit: not known" in shown(found)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A deployment of its own over a served world, with nothing in it."""
    with served(world()) as outside:
        monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
        monkeypatch.setenv("PILOTLIGHT_WORLD", outside.url)
        yield tmp_path


def run(*words: str) -> Result:
    """The command's outcome."""
    return CliRunner().invoke(build(["status"]), ["status", *words], catch_exceptions=False)


def test_the_exit_code_says_whether_a_person_is_needed(home: Path) -> None:
    """Nothing ever ticked here: that is said, and the code is 1."""
    result = run()
    assert result.exit_code == 1
    assert " ".join(result.stdout.split()).startswith(
        f"cluster local, a pretend world at {os.environ['PILOTLIGHT_WORLD']} with pretend dollars; state "
    )
    assert "needs a person: capacity_reconcile has never ticked" in result.stdout
    (found,) = json.loads(run("--json").stdout)
    assert (found["cluster"], found["mode"], found["nodes"]) == ("local", "act", [])


class Watch(NamedTuple):
    """``status --watch`` on a terminal of its own: its process, and our end."""

    process: subprocess.Popen[bytes]
    screen: int

    def until(self, *shown: str) -> str:
        """What it wrote until all of that was on it."""
        said, end = "", time.monotonic() + 120
        while not all(text in said for text in shown):
            assert time.monotonic() < end, f"{shown} never came: {said[-2000:]!r}"
            said += os.read(self.screen, 65_536).decode(errors="replace")
        return said


@contextmanager
def watching(home: Path) -> Iterator[Watch]:
    """It begins, and is gone when it is left."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "PILOTLIGHT_HOME": str(home), "TERM": "xterm", "COLUMNS": "150", "LINES": "40"}
    words = [sys.executable, "-c", QUICK, "status", "--watch"]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, start_new_session=True)
    os.close(theirs)
    try:
        yield Watch(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_watch_is_a_screen_that_follows_and_leaves_the_terminal_as_it_was(home: Path) -> None:
    """It takes a screen of its own, shows a pause that comes, and Ctrl-C gives the old screen back with code 130."""
    with watching(home) as watch:
        first = watch.until("\x1b[?1049h", "needs a person: capacity_reconcile has never ticked")
        assert "paused:" not in first
        state = App(Settings.from_environ({**os.environ, "PILOTLIGHT_HOME": str(home)})).state
        brake_records.pause(state, "local", "", "month end", state.now(), "ada")
        watch.until("paused: all pools since", "by ada: month end")
        watch.process.send_signal(signal.SIGINT)
        watch.until("\x1b[?1049l")
        assert watch.process.wait(60) == 130


def test_a_look_that_fails_ends_no_watch(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says why and when it looks again."""

    def down(_: App) -> list[Glance]:
        raise Unavailable("the store does not answer")

    monkeypatch.setattr(status_command, "_glances", down)
    (line,) = status_command._seen_or_why(App(Settings()))
    assert str(line) == "cannot be looked at: the store does not answer; again in 5 s"


def test_what_is_asked_for_twice_is_refused(home: Path) -> None:
    """JSON is said once."""
    with pytest.raises(BadInput, match="--json says it once"):
        run("--json", "--watch")
