"""Advice is followed from tick to tick in pools that are advised on, and nowhere else."""

from dataclasses import replace
from datetime import timedelta

from stage import START, Stage

from pilotlight.state_schema.alert_records import ADVICE, FOLLOWED
from pilotlight.tools.advice.beside_advice import advice_since


def ends(stage: Stage) -> list[tuple[str, str]]:
    """What became of all that was advised."""
    return sorted((one.call, one.end) for one in advice_since(stage.deps.state, "c", START - timedelta(hours=1)))


def test_a_node_advised_to_go_is_followed_until_work_comes_back() -> None:
    """It is idle too long, so it would go; then a pod runs on it, and that advice is over."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=600))
    stage.minutes(5)
    stage.deps = replace(stage.deps, mode="advise")
    stage.minutes(20)
    assert (stage.nodes("one"), ends(stage)) == (1, [("release", "")])
    stage.submit("b", run_s=600)
    stage.minutes(2)
    assert ends(stage) == [("release", "used")]


def test_a_purchase_is_followed_until_another_hand_has_made_it() -> None:
    """Each tick advises it anew, and it is one advice; it ends when the pod is at work."""
    stage = Stage()
    stage.deps = replace(stage.deps, mode="advise")
    pod = stage.submit("a")
    stage.minutes(10)
    assert (stage.nodes("one"), ends(stage)) == (0, [("grow", "")])
    stage.deps = replace(stage.deps, mode="act")
    stage.event(pod)
    stage.deps = replace(stage.deps, mode="advise")
    stage.minutes(5)
    assert ends(stage) == [("grow", "bound")]


def test_where_pools_are_acted_on_nothing_is_written() -> None:
    """A cluster in mode act has no advice."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=600))
    stage.minutes(20)
    assert [*FOLLOWED.scan(stage.deps.state), *ADVICE.scan(stage.deps.state)] == []
