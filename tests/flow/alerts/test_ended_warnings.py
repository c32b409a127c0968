"""Warnings that end: people are told so, once, where they were told of the beginning."""

from contextlib import suppress
from datetime import timedelta

import pytest
from stage import Stage

from pilotlight.errors import Forbidden, Retry, Throttled, Unavailable
from pilotlight.facts.messages import Alert
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import ledger


def told(stage: Stage, kind: str) -> list[Alert]:
    """The alerts of a kind, in order."""
    return [alert for alert in stage.alerts if alert.kind == kind]


def test_a_refused_pod_that_gets_its_gpu_is_told_over_once() -> None:
    """A pod that the pool's maximum refuses is told once, and over once it runs; nothing is repeated after that."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=1)})
    stage.event(stage.submit("first", run_s=600))
    stage.minutes(4)
    stage.submit("second", run_s=3600)
    stage.minutes(2)
    [begun] = told(stage, "refused")
    assert (begun.subject, begun.resolved) == ("ml/second", False)
    stage.minutes(30)
    _, *over = told(stage, "refused")
    assert [(alert.fingerprint, alert.resolved, alert.severity) for alert in over] == [
        (begun.fingerprint, True, begun.severity)
    ]


def test_a_refused_pods_team_is_named() -> None:
    """So that the channel of that team hears of it, and no other team's."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=0)})
    stage.submit("waits", team="vision")
    stage.minutes(2)
    assert [alert.team for alert in told(stage, "refused")] == ["vision"]


def test_a_pod_that_goes_on_waiting_is_not_told_over() -> None:
    """While the pod is refused nothing ends, however often it is looked at."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=0)})
    stage.submit("waits")
    stage.minutes(30)
    assert [alert.resolved for alert in told(stage, "refused")] == [False]


def test_a_cluster_that_answers_again_is_told_of_once() -> None:
    """A silence of a quarter of an hour is told, and its end; a shorter one is neither."""
    stage = Stage()

    def silent(minutes: int) -> None:
        for _ in range(minutes):
            stage.wait(60)
            stage.fail("observe", Unavailable("no route to host"))
            try:
                stage.tick()
            except Retry:
                continue

    silent(5)
    stage.minutes(2)
    assert told(stage, "silent") == []
    silent(15)
    stage.minutes(3)
    begun, over = told(stage, "silent")
    assert (begun.resolved, over.resolved) == (False, True)
    assert begun.fingerprint == over.fingerprint
    assert over.at - begun.at >= timedelta(minutes=4)  # type: ignore[operator]


def test_a_call_that_always_fails_is_no_silence_of_the_cluster() -> None:
    """Each tick looks, and releases one idle node or another, which is answered with "not now": nobody is told that
    nothing was looked at."""
    stage = Stage()
    for n in range(14):
        stage.submit(f"p{n}", run_s=60)
    for _ in range(40):
        stage.wait(60)
        stage.world._errors.clear()
        stage.fail("release", Throttled("not now"))
        with suppress(Retry):
            stage.tick()
    (alert,) = told(stage, "silent")
    assert (alert.what, alert.why) == ("cluster c: what ticks do has failed for 10 min", "not now")
    assert alert.next == "what failed is tried again at every look"


def test_a_cluster_that_refuses_us_is_told_of_at_once() -> None:
    """Rights that are missing do not come back by waiting: the first tick says so, the next ones do not."""
    stage = Stage()
    for _ in range(3):
        stage.fail("observe", Forbidden("the API server answers 403: may not list pods"))
        with pytest.raises(Forbidden):
            stage.tick()
        stage.wait(60)
    (alert,) = [a for a in stage.alerts if a.kind == "silent"]
    assert (alert.what, alert.why) == ("cluster c refuses us", "the API server answers 403: may not list pods")
    stage.tick()
    assert [a.resolved for a in stage.alerts if a.kind == "silent"] == [False, True]


def test_a_silence_that_is_over_does_not_begin_again() -> None:
    """A worker that read of it before the others forgot it fails late: people were told that it is over."""
    stage = Stage()
    stage.fail("observe", Forbidden("the API server answers 403: may not list pods"))
    with pytest.raises(Forbidden):
        stage.tick()
    (read,) = stage.deps.state.scan("silent/").items
    stage.wait(60)
    stage.tick()
    stage.deps.state.put(read[0], read[1].value)
    stage.fail("observe", Forbidden("the API server answers 403: may not list pods"))
    with pytest.raises(Forbidden):
        stage.tick()
    assert [a.resolved for a in stage.alerts if a.kind == "silent"] == [False, True]


def test_a_node_that_boots_is_not_told_gone() -> None:
    """Its release was told as not made: while it boots and once it joined nothing is over, when it goes it is."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=1)})
    stage.event(stage.submit("a", run_s=3000))
    ledger.mark_told(stage.deps.state, "c", "undone/release/one/n1")
    stage.minutes(5)
    assert told(stage, "capacity-undone") == []
    stage.world.terminate("n1", "reclaimed", evict=True)
    stage.minutes(1)
    assert [(alert.what, alert.resolved) for alert in told(stage, "capacity-undone")] == [("node n1 is gone", True)]
