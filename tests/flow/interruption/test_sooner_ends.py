"""An end that moves forward: a cloud takes a node sooner than it said first, or somebody says so who lies."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from test_interrupt import SAVES, SPOT, Doomed, Unsaying
from test_shown_notices import Showing

from pilotlight.facts.messages import NoticeKind
from pilotlight.facts.nodes.pool_state import InstanceState
from pilotlight.flow.budgets import interruption_records
from pilotlight.units import HOUR
from pilotlight.world.world_pools import WorldPools


class Lagging(WorldPools):
    """A cloud whose API goes on saying for a while what was true when its notice went out."""

    def __init__(self, world: Any, until: datetime, said: datetime) -> None:
        super().__init__(world)
        self._until, self._said = until, said

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """The old end, and later what is true."""
        found = super().instance(pool, instance)
        late = found is not None and found.there and self._world.clock.now() < self._until
        return msgspec.structs.replace(found, deadline=self._said) if found is not None and late else found


def told(stage: Doomed, seconds: float, kind: NoticeKind = "spot-interruption") -> None:
    """Somebody says that the node goes in so many seconds."""
    stage.deliver(kind, deadline=stage.world.clock.now() + timedelta(seconds=seconds))


def ends(stage: Doomed) -> tuple[str, datetime | None]:
    """What is known of the end of the node."""
    kept = interruption_records.find(stage.deps, "n1")
    assert kept is not None
    return kept.found.truth, kept.found.deadline


@pytest.mark.parametrize("lags_s", [0, 20], ids=["its API says so at once", "its API says so later"])
@pytest.mark.parametrize(("pod", "left_s"), [(SAVES, 90), ({}, 120)], ids=["saves when asked", "cannot save"])
def test_a_cloud_that_takes_a_node_sooner_than_it_said_is_heard(
    pod: dict[str, float], left_s: float, lags_s: float
) -> None:
    """Half an hour was said and confirmed, then two minutes: the pod has left, and the node, before it is taken."""
    stage = Doomed(pods=[pod])
    stage.notice(notice_s=1800)
    stage.until(10)
    truth, first = ends(stage)
    assert (truth, first) != ("unverified", None)
    assert first is not None
    begin = stage.world.now_s
    if lags_s:
        until = stage.world.clock.now() + timedelta(seconds=lags_s)
        stage.deps = replace(stage.deps, pools=Lagging(stage.world, until, first))
    stage.notice(notice_s=left_s)
    stage.until(left_s + 60)
    (gone,) = [at for at, _ in stage.of("terminate")]
    assert begin < gone <= begin + left_s - 10
    assert stage.outcome == "released"
    assert stage.world.launches == 2


@pytest.mark.parametrize("cloud", ["answers", "is silent"])
@pytest.mark.parametrize("pod", [SAVES, {}], ids=["saves when asked", "cannot save"])
def test_a_sooner_end_that_is_a_lie_hurries_nobody(pod: dict[str, float], cloud: str) -> None:
    """Nobody leaves before its grace of the lie where the cloud is silent, nor for it at all where the cloud says when;
    what was confirmed before stays true, and is kept to."""
    stage = Doomed(pods=[pod])
    stage.notice(notice_s=1800)
    truth, first = ends(stage)
    assert truth == "verified"
    begin = stage.world.now_s
    if cloud == "is silent":
        stage.deps = replace(stage.deps, pools=Unsaying(stage.world))
    told(stage, 120)
    stage.until(75)
    assert not stage.of("stop", "terminate")
    stage.until(200)
    assert stage.outcome in ("", "released")
    assert ends(stage) == ("verified", first)
    if not pod and cloud == "answers":
        assert not stage.of("stop", "terminate")
        stage.until(1600)
        assert [at for at, _ in stage.of("terminate")] == [begin + 1800 - 10 - 30]
    assert stage.world.launches == 2


def test_a_lie_of_today_opens_a_node_of_tonights_maintenance_again() -> None:
    """A node that shows maintenance in three hours, of which a lie says in minutes, takes pods until its time comes."""
    mark = {"cloud.google.com/scheduled-maintenance-time": "1763661600"}
    stage = Doomed(pods=[{}])
    node = stage.world.nodes["n1"]
    node.machine = msgspec.structs.replace(node.machine, labels={**node.machine.labels, **mark})
    node.value = None
    stage.notice("scheduled-change", 3 * HOUR)
    stage.until(30)
    before = ends(stage)
    assert before[0] == "verified"
    told(stage, 150, "scheduled-change")
    assert node.cordoned
    stage.until(120)
    assert not stage.of("stop", "terminate")
    assert ends(stage) == before
    assert not node.cordoned
    assert stage.world.launches == 1


def test_another_clouds_word_moves_nothing() -> None:
    """What the cluster's cloud would never send changes nothing of what it said."""
    stage = Doomed(SPOT, pods=[{}])
    stage.notice(notice_s=1800)
    before = ends(stage)
    year = stage.world.clock.now() + timedelta(days=200)
    stage.deliver("spot-interruption", deadline=stage.world.clock.now() + timedelta(seconds=60), fields={"at": year})
    stage.until(60)
    assert ends(stage) == before
    assert not stage.of("stop", "terminate")


def test_a_mark_that_names_no_time_moves_no_end() -> None:
    """AKS shows a preemption that its event dated for half an hour from now: the look begins nothing sooner."""
    stage = Doomed(pods=[{}])
    stage.notice(notice_s=1800)
    before = ends(stage)
    cluster = Showing(stage.world)
    cluster.fields = {"conditions": ("PreemptScheduled",), "cloud": "azure"}
    stage.deps = replace(stage.deps, cluster=cluster)
    stage.tick()
    stage.until(60)
    assert ends(stage) == before
    assert not stage.of("stop", "terminate")
