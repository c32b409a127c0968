"""A node leaves its pool between the look that a purchase is planned by and the call, where a cloud names no nodes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from civo_server import CLUSTER, REGION, TOKEN, Civo, Fault
from civo_server import serving as civo_serving
from stage import Stage
from test_karpenter_left import After
from test_on_aws import CALLS, on_aws

from pilotlight.adapters import civo_api
from pilotlight.adapters.civo_api import CivoApi
from pilotlight.adapters.pools.asg import pools as asg_pools
from pilotlight.adapters.pools.civo.pools import CivoPools
from pilotlight.errors import Retry
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import ledger
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR

CLOUDS = ("AWS, launching at once", "AWS, by a size", "Civo")


@contextmanager
def on(cloud: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stage, Any]]:
    """A stage with one pool and a budget, on a cloud whose calls end soon where it is silent."""
    monkeypatch.setattr(asg_pools, "WRITE_S", 0.2)
    monkeypatch.setattr(civo_api, "WRITE_S", 0.2)
    options: dict[str, Any] = {
        "pools": {"one": PoolPolicy(instance_type="one", max=4)},
        "budgets": (Budget(name="all", usd=Decimal(1000), period="day"),),
    }
    if cloud != "Civo":
        with on_aws(at_once=cloud == CLOUDS[0], **options) as made:
            yield made
        return
    stage = Stage(**options)
    civo = Civo(stage.world)
    with civo_serving(civo) as url:
        api = CivoApi(TOKEN, REGION, url=url, sleep=lambda _: None)
        stage.deps = replace(stage.deps, pools=CivoPools(api, CLUSTER, civo.ids(), stage.world.clock))
        yield stage, civo


def holds(stage: Stage) -> int:
    """Nodes that dollars are held for."""
    return len(list(HOLD.scan(stage.deps.state, "")))


def leaving(stage: Stage) -> None:
    """The first node goes, by a person's hand, right before the next purchase is sent."""
    (first,) = stage.world.nodes
    gone = After(stage.deps.pools, lambda: stage.world.terminate(first, "by hand", evict=True))
    stage.deps = replace(stage.deps, pools=gone)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_purchase_buys_no_more_nodes_than_it_holds_dollars_for(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of the node that left is not filled by the other's purchase: its pod is bought for by the next look."""
    with on(cloud, monkeypatch) as (stage, _):
        stage.event(stage.submit("a", run_s=2 * HOUR))
        stage.minutes(5)
        leaving(stage)
        stage.event(stage.submit("b", run_s=2 * HOUR))
        assert (stage.world.launches, holds(stage), stage.world.fleet.desired["one"]) == (2, 2, 1)
        stage.minutes(5)
        assert (stage.world.launches, stage.nodes("one"), holds(stage)) == (3, 2, 2)
        assert sorted(stage.world.running) == ["uid-a", "uid-b"]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_lost_answer_is_settled_by_the_size_that_was_asked_for(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node of a purchase that asked for less than was planned is the purchase's: its dollars stay held."""
    with on(cloud, monkeypatch) as (stage, server):
        stage.event(stage.submit("a", run_s=2 * HOUR))
        stage.minutes(5)
        leaving(stage)
        pod = stage.submit("b", run_s=2 * HOUR)
        method = "PUT" if cloud == "Civo" else CALLS[cloud == CLOUDS[0]]
        server.faults = [Fault("cut", when="after", method=method)]
        with pytest.raises(Retry):
            stage.event(pod)
        for _ in range(10):
            stage.wait(15)
            with suppress(Retry):
                stage.tick()
        (step,) = (s for r in ledger.filed_records(stage.deps.state, "c") for s in r.steps if s.code == "late")
        assert (step.state, step.count, step.to) == ("done", 1, 1)
        assert (stage.world.launches, stage.nodes("one"), holds(stage)) == (3, 2, 2)
