"""The flows with Civo as the cloud: what a lost answer, a refusal or a kept node leads to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from civo_server import CLUSTER, REGION, TOKEN, Civo, Fault, serving
from stage import Stage

from pilotlight.adapters import civo_api
from pilotlight.adapters.civo_api import CivoApi
from pilotlight.adapters.pools.civo.pools import CivoPools
from pilotlight.errors import Retry


@contextmanager
def on_civo(**options: Any) -> Iterator[tuple[Stage, Civo]]:
    """A stage whose nodes Civo sells."""
    stage = Stage()
    civo = Civo(stage.world, **options)
    with serving(civo) as url:
        api = CivoApi(TOKEN, REGION, url=url, sleep=lambda _: None)
        stage.deps = replace(stage.deps, pools=CivoPools(api, CLUSTER, civo.ids(), stage.world.clock))
        yield stage, civo


@pytest.fixture
def here() -> Iterator[tuple[Stage, Civo]]:
    """A stage on Civo."""
    with on_civo() as made:
        yield made


def test_a_pod_gets_its_node_and_the_node_goes_when_it_ends(here: tuple[Stage, Civo]) -> None:
    """One pod: one resize to one node; after its run and its idle time that very instance is deleted, and no other."""
    stage, civo = here
    stage.event(stage.submit("a", run_s=600))
    stage.minutes(25)
    changes = [(verb, path.rpartition("/pools/")[2]) for verb, path, _ in civo.calls if verb != "GET"]
    assert changes == [("PUT", "one-pool-id"), ("DELETE", "one-pool-id/instances/n1")]
    assert (stage.world.launches, stage.nodes("one"), len(stage.world.finished)) == (1, 0, 1)


def test_nodes_that_joined_long_ago_are_not_capacity_that_failed(here: tuple[Stage, Civo]) -> None:
    """Civo names instances that are nodes by now: past the ready deadline a running one stays."""
    stage, _ = here
    stage.event(stage.submit("a", run_s=4 * 3600))
    stage.minutes(60)
    assert (stage.nodes("one"), stage.events("node_terminate")) == (1, [])


@pytest.mark.parametrize("what", ["hang", "reset", "cut", (200, {"id": 7})], ids=["no answer", "reset", "cut", "wrong"])
def test_an_answer_that_is_lost_buys_nothing_twice(
    here: tuple[Stage, Civo], what: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Civo acted and its answer was lost: a second delivery and the ticks after it find the node on its way."""
    monkeypatch.setattr(civo_api, "WRITE_S", 1.0)
    stage, civo = here
    pod = stage.submit("a", run_s=3600)
    civo.faults = [Fault(what, when="after", method="PUT")]
    with pytest.raises(Retry):
        stage.event(pod)
    stage.event(pod)
    stage.minutes(10)
    assert (stage.world.launches, stage.nodes("one")) == (1, 1)


def test_a_node_that_civo_keeps_is_told_of_with_its_price_and_not_asked_for_every_minute() -> None:
    """The cloud keeps the last node: it takes pods again, one alert names its dollars, and it is asked once a day."""
    with on_civo(last_node_stays=True) as (stage, civo):
        stage.event(stage.submit("a", run_s=300))
        stage.minutes(60)
        deletions = [path for verb, path, _ in civo.calls if verb == "DELETE"]
        (alert,) = [a for a in stage.alerts if a.kind == "capacity-denied"]
        assert (len(deletions), "keeps the last node" in alert.why, "$1.00/h" in alert.why) == (1, True, True)
        assert stage.deps.cluster.observe().nodes[0].schedulable
        for _ in range(24):
            stage.wait(3600)
            stage.tick()
        assert len([path for verb, path, _ in civo.calls if verb == "DELETE"]) == 2
