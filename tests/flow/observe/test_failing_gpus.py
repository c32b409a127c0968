"""A node whose GPU fails: closed, told, given back once it is empty, and replaced as any other."""

from dataclasses import replace

import msgspec
import pytest
from stage import Stage

from pilotlight.facts.capacity import ClusterView
from pilotlight.flow.records import brake_records
from pilotlight.world.world_cluster import WorldCluster


class Watched(WorldCluster):
    """A cluster in which somebody watches drivers: ``ill`` are nodes with what is the matter."""

    ill: dict[str, str]

    def observe(self) -> ClusterView:
        """The view with what is said of nodes."""
        view = super().observe()
        nodes = tuple(msgspec.structs.replace(node, sick=self.ill.get(node.name, "")) for node in view.nodes)
        return msgspec.structs.replace(view, nodes=nodes)


@pytest.fixture
def stage() -> Stage:
    """Two nodes of one GPU at work, one for an hour and one for ten."""
    stage = Stage()
    cluster = Watched(stage.world)
    cluster.ill = {}
    stage.deps = replace(stage.deps, cluster=cluster)
    stage.event(stage.submit("short", run_s=3600))
    stage.event(stage.submit("long", run_s=36000))
    stage.minutes(20)
    return stage


def at_work(stage: Stage, pod: str) -> str:
    """The node that a pod is on."""
    view = stage.deps.cluster.observe()
    return next(node.name for node in view.nodes for one in node.gpu_pods if one.name == pod)


def fall_ill(stage: Stage, pod: str) -> str:
    """The GPU below a pod fails, and a tick comes."""
    name, cluster = at_work(stage, pod), stage.deps.cluster
    assert isinstance(cluster, Watched)
    cluster.ill[name] = "XIDErrors is True (XID 79)"
    stage.minutes(1)
    return name


def test_a_sick_node_is_closed_told_and_emptied_by_its_pods_alone(stage: Stage) -> None:
    """Its pod runs to its end; then the instance goes, and not before."""
    name = fall_ill(stage, "short")
    seen = next(node for node in stage.deps.cluster.observe().nodes if node.name == name)
    assert (seen.marked, at_work(stage, "short")) == (True, name)
    [told] = [alert for alert in stage.alerts if alert.kind == "finding-sick-gpu"]
    assert "XID 79" in told.why
    stage.minutes(50)
    assert name not in stage.world.nodes
    assert not [event for event in stage.events("stop") if event.get("reason") == "evicted"]


def test_what_comes_next_is_bought_beside_it(stage: Stage) -> None:
    """It is no room: a pod that would have fitted it once it is free gets a node of its own, within the caps."""
    name = fall_ill(stage, "short")
    stage.event(stage.submit("next"))
    stage.minutes(6)
    assert at_work(stage, "next") != name
    assert stage.nodes("one") == 3


def test_a_node_that_is_well_again_opens(stage: Stage) -> None:
    """A condition that passes leaves nothing behind."""
    name, cluster = fall_ill(stage, "long"), stage.deps.cluster
    assert isinstance(cluster, Watched)
    cluster.ill.clear()
    stage.minutes(1)
    assert not next(node for node in cluster.observe().nodes if node.name == name).marked


@pytest.mark.parametrize("how", ["advise", "paused"])
def test_where_nothing_may_be_done_it_is_told_alone(stage: Stage, how: str) -> None:
    """Advice and a pause close nothing."""
    if how == "advise":
        stage.deps = replace(stage.deps, mode="advise")
    else:
        brake_records.pause(stage.deps.state, "c", "*", "trying", stage.deps.now())
    name = fall_ill(stage, "short")
    assert not next(node for node in stage.deps.cluster.observe().nodes if node.name == name).marked
    assert [alert.kind for alert in stage.alerts if alert.kind == "finding-sick-gpu"] == ["finding-sick-gpu"]
