"""pilotlight status: a cluster at a glance, and an exit code that says whether it needs a person."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console
from stage import Stage
from typer.testing import CliRunner, Result

from pilotlight.cli.glance import glance
from pilotlight.cli.main import build
from pilotlight.errors import Unavailable
from pilotlight.facts.glance import Glance
from pilotlight.facts.memory import Backoff
from pilotlight.facts.messages import Tick
from pilotlight.facts.policy import ApproveOver, Budget
from pilotlight.flow.billing.tick import billing
from pilotlight.flow.deps import Deps
from pilotlight.flow.memory import brakes
from pilotlight.ports import State
from pilotlight.report.glance_text import lines
from pilotlight.state_schema.decisions import MEMORY


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
    assert [(n.pool, str(n.usd_per_hour), n.verdict) for n in found.nodes] == [("one", "1", "keep")]
    assert [(w.first, w.verdict) for w in found.waiting] == [("ml/b", "booting")]
    assert (str(found.usd_per_hour), found.held, found.letters) == ("33", 2, None)
    assert found.budgets[0].left < 1000
    text = shown(found)
    for said in (
        "mode act",
        "capacity_reconcile 30 s ago",
        "lit: 1 node, $33.00/h with what boots",
        "booting: ml/b",
        "2 holds",
    ):
        assert said in text


def test_what_needs_a_person_is_said_first_with_what_to_do() -> None:
    """An approval by its decision, a pod that gets no node, a function that stands still, an event that was refused."""
    on = Stage(approve_over=ApproveOver(usd_per_hour=Decimal(10)))
    on.event(on.submit("big", gpus=8, gpu_models=("A100",)))
    on.event(on.submit("odd", gpus=16, gpu_models=("A100",)))
    on.minutes(1)
    ticked(on, ago_s=1200)
    needs = seen(on).needs
    assert [any(text in need for need in needs) for text in (
        "capacity_reconcile has not ticked for 20 min", "1 of pool eight wait for approval", "ml/odd will get no node",
    )] == [True] * 3, needs  # fmt: skip
    decision = next(need for need in needs if "approve" in need).rpartition(" ")[2]
    brakes.approve(on.deps.state, "c", decision, {"eight": 1}, on.deps.state.now())
    on.minutes(1)
    assert not any("wait for approval" in need for need in seen(on).needs)


def test_a_pause_says_by_whom_and_needs_nobody() -> None:
    """Somebody wished it; how to take it back is beside it."""
    on = Stage()
    ticked(on)
    brakes.pause(on.deps.state, "c", "one", "price check", on.world.clock.now(), "ada")
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
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deployment of its own, with nothing in it."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    return tmp_path


def run(*words: str) -> Result:
    """The command's outcome."""
    return CliRunner().invoke(build(["status"]), ["status", *words], catch_exceptions=False)


def test_the_exit_code_says_whether_a_person_is_needed(home: Path) -> None:
    """Nothing ever ticked here: that is said, and the code is 1."""
    result = run()
    assert result.exit_code == 1
    assert "needs a person: capacity_reconcile has never ticked" in result.stdout
    (found,) = json.loads(run("--json").stdout)
    assert (found["cluster"], found["mode"], found["nodes"]) == ("local", "act", [])
