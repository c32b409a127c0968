"""Events on pods and nodes: what `kubectl describe` shows of a decision, once a change, and never in its way."""

from dataclasses import replace
from datetime import timedelta

import pytest
from stage import START, Stage

from pilotlight.errors import Forbidden, NoCapacity, PilotlightError, Unavailable
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.money.money_policy import Caps, Limits
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt


def _told(stage: Stage, about: str = "") -> list[tuple[str, str]]:
    """(about, reason) of every Event so far, or (reason, message) of those about one object."""
    told = stage.deps.cluster.told  # type: ignore[attr-defined]
    if not about:
        return [(name, reason) for _, name, reason, _ in told]
    return [(reason, message) for _, name, reason, message in told if name == about]


def test_a_pod_is_told_what_was_bought_and_when_it_is_ready() -> None:
    """The pool, the price and the hour, once, however often its event comes again while the node boots."""
    stage = Stage()
    pod = stage.submit("a")
    stage.event(pod)
    stage.minutes(2)
    stage.event(pod)
    [(reason, message)] = _told(stage, "ml/a")
    ready = (START + timedelta(minutes=3)).strftime("%H:%M")
    assert reason == "GpuNodeBought"
    assert message.startswith(f"bought 1 x one/one/on-demand at $1.00/h each, ready by about {ready} UTC: ")


def test_a_refused_pod_is_told_why_with_figures_and_the_next_try() -> None:
    """Once in an hour of looks, though the others in its place come and go."""
    stage = Stage(caps=Caps(nodes=1))
    for name in ("a", "b"):
        stage.event(stage.submit(name, run_s=7200))
    stage.minutes(60)
    assert _told(stage) == [("ml/a", "GpuNodeBought"), ("ml/b", "NoGpuNode")]
    [(_, message)] = _told(stage, "ml/b")
    assert "1 of 1 node lit" in message
    assert message.endswith(("UTC", "looked at again every minute"))


def test_a_pod_that_a_brake_holds_is_told_which() -> None:
    """No node is bought for it by the limit of ten minutes: the limit is named, once."""
    stage = Stage(caps=Caps(ten_minutes=Limits(nodes_added=1)))
    for name in ("a", "b"):
        stage.event(stage.submit(name))
    stage.minutes(3)
    [(reason, message)] = _told(stage, "ml/b")
    assert reason == "NoGpuNode"
    assert "would be bought one" in message


def test_what_the_cloud_refused_is_not_called_bought() -> None:
    """An Event is of what became of the call: the cloud's own words stand in it."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=3)})
    stage.fail("grow", NoCapacity("no T4 in this zone"))
    stage.event(stage.submit("a"))
    [(reason, message)] = _told(stage, "ml/a")
    assert reason == "NoGpuNode"
    assert "not bought: NoCapacity: no T4 in this zone" in message


def test_a_node_that_goes_says_so() -> None:
    """It was given back, with why, and what it no longer costs: that it was closed for it before is no news."""
    stage = Stage(classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=120)})
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(12)
    assert stage.nodes("one") == 0
    [(reason, message)] = _told(stage, "n1")
    assert reason == "Released"
    assert message.startswith("given back by Pilotlight, $1.00/h less: ")


def test_a_node_that_was_to_go_and_stays_says_why() -> None:
    """What kept it, and what it costs meanwhile."""
    stage = Stage(classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=120)})
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(5)
    stage.fail("release", Forbidden("this pool is another's"))
    stage.minutes(4)
    kept = [message for reason, message in _told(stage, "n1") if reason == "Kept"]
    assert kept[0].startswith("kept at $1.00/h: Forbidden: this pool is another's")


def test_a_pod_that_is_moved_is_told_by_whom() -> None:
    """An interruption closes the node and evicts its pod: both say which, and that room was asked for before."""
    rules = ClassPolicy(gpu_models="any", capacity_types=("spot",), idle_timeout=300)
    spot = PoolPolicy(instance_type="one", capacity_type="spot", max=5)
    stage = Stage(pools={"p": spot}, classes={"batch": rules, "training": rules})
    stage.event(stage.submit("a", run_s=40_000, checkpoint_s=7200.0))
    stage.minutes(5)
    stage.world.interrupt("n1", 120)
    at = stage.world.clock.now()
    notice = InterruptionNotice(
        cluster="c", instance="n1", kind="spot-interruption", cloud="world", at=at, deadline=at + timedelta(seconds=120)
    )
    interrupt(stage.deps, notice)
    for _ in range(24):
        stage.wait(5)
        go_on(stage.deps)
    assert ("n1", "Cordoned") in _told(stage)
    [message] = [message for reason, message in _told(stage, "ml/a") if reason == "MovedOff"]
    assert message.startswith("evicted by Pilotlight: n1 is taken by spot-interruption")
    assert message.endswith("room was asked for before")


@pytest.mark.parametrize(
    ("events", "told"),
    [
        pytest.param("all", {"GpuNodeBought", "NoGpuNode"}, id="by default both are told"),
        pytest.param("warnings", {"NoGpuNode"}, id="only what gets no node"),
        pytest.param("none", set(), id="none is told"),
    ],
)
def test_the_policy_says_how_quiet_they_are(events: str, told: set[str]) -> None:
    """All, the warnings alone, or none at all."""
    stage = Stage(caps=Caps(nodes=1), events=events)
    for name in ("a", "b"):
        stage.event(stage.submit(name))
    assert {reason for _, reason in _told(stage)} == told


def test_advice_alone_writes_nothing() -> None:
    """Where no pool may be acted on, the cluster is only read."""
    stage = Stage()
    stage.deps = replace(stage.deps, mode="advise")
    stage.event(stage.submit("a"))
    assert _told(stage) == []


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Forbidden("may not create events"), id="without the right"),
        pytest.param(Unavailable("the API server is away"), id="while the server is away"),
    ],
)
def test_an_event_that_cannot_be_written_fails_nothing(error: PilotlightError) -> None:
    """The node is bought, the alert is out and the decision filed all the same."""
    stage = Stage()
    stage.fail("tell", error)
    answer = stage.event(stage.submit("a"))
    assert (answer.outcome, stage.nodes("one"), stage.failures_left) == ("done", 1, 0)
    assert [alert.kind for alert in stage.alerts] == ["capacity-grow"]
