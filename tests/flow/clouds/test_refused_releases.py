"""A release that its cloud refuses was not done: it is told once, and tried less often each time, its node open."""

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from civo_server import Fault
from gke_answers import Refused
from gke_server import Gke
from stage import Stage
from test_on_gke import on_gke
from test_on_gke_closed import BOTH, go_on
from test_on_gke_silent import CAP, MAY_STOP
from test_on_karpenter import on_karpenter

from pilotlight.adapters.pools.gke import google_rest
from pilotlight.errors import Retry
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.cycle import planning
from pilotlight.units import HOUR

ONE = {"one": PoolPolicy(instance_type="one", max=2)}
DAY = (Budget(name="all", usd=Decimal(1000), period="day"),)


@pytest.fixture(autouse=True)
def _not_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))


def ticks(stage: Stage, minutes: int) -> None:
    """A tick a minute, whatever it raises."""
    for _ in range(minutes):
        stage.wait(60)
        with suppress(Retry):
            stage.tick()


def drained(stage: Stage) -> list[Any]:
    """Drains of a node, in order, as its cluster saw them."""
    drains: list[Any] = []
    real = stage.deps.cluster.drain

    def drain(node: str) -> None:
        drains.append((stage.world.now_s, node))
        real(node)

    stage.deps.cluster.drain = drain  # type: ignore[method-assign]
    return drains


def refused(stage: Stage, gke: Gke, status: int) -> str:
    """An idle node whose deletion is answered with a status; its name."""
    stage.event(stage.submit("a", workload_class="batch", run_s=300))
    stage.minutes(5)
    gke.stuck_deletions["one"] = status
    (name,) = stage.world.nodes
    return name


@pytest.mark.parametrize("status", [400, 403, 409])
def test_a_release_that_is_refused_for_four_hours_is_tried_every_ten_minutes(status: int) -> None:
    """It rests between, longer each time: its node is drained no oftener, takes pods meanwhile, and goes in the end."""
    with on_gke(pools=ONE, budgets=DAY) as (stage, gke):
        name = refused(stage, gke, status)
        drains = drained(stage)
        ticks(stage, 240)
        asked = len(gke.deleted())
        assert (20 <= asked <= 32, len(drains) <= asked) == (True, True)
        told = [alert for alert in stage.alerts if alert.kind in ("capacity-denied", "capacity-undone")]
        assert (len(told), str(status) in told[0].why) == (1, True)
        assert [node.cordoned for node in stage.world.nodes.values() if node.id == name] == [False]
        gke.stuck_deletions.clear()
        ticks(stage, 15)
        over = [(alert.kind, alert.fingerprint) for alert in stage.alerts if alert.resolved]
        assert (stage.nodes("one"), over) == (0, [(told[0].kind, told[0].fingerprint)])


def test_the_end_of_a_hard_budget_is_tried_at_each_end_of_the_pause() -> None:
    """Its pods are stopped once; the deletion is refused a few times, and the node goes once it is not any more."""
    with on_gke(pools=BOTH, budgets=CAP, classes=MAY_STOP) as (stage, gke):
        stage.event(stage.submit("a", workload_class="batch", run_s=20 * HOUR))
        stage.minutes(5)
        gke.stuck_deletions["one"] = 403
        go_on(stage, 5 * 60)
        assert (4 <= len(gke.deleted()) <= 20, len(stage.world.running)) == (True, 0)
        gke.stuck_deletions.clear()
        go_on(stage, 15)
        assert stage.nodes("one") == 0


def test_a_release_that_was_refused_once_is_made_a_minute_later() -> None:
    """One no is soon forgotten: its node is given back at the next look but one."""
    with on_gke(pools=ONE, budgets=DAY) as (stage, gke):
        refused(stage, gke, 403)
        while not gke.deleted():
            ticks(stage, 1)
        gke.stuck_deletions.clear()
        ticks(stage, 2)
        assert (len(gke.deleted()), stage.nodes("one")) == (2, 0)


def test_a_refused_release_keeps_no_other_node_of_its_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud protects one instance: the other idle one goes at once, and the protected one is the warm one."""
    pools = {"one": PoolPolicy(instance_type="one", max=2, min=1)}
    with on_gke(pools=pools, budgets=DAY) as (stage, gke):
        for name in "ab":
            stage.event(stage.submit(name, workload_class="batch", run_s=300))
        stage.minutes(4)
        first = sorted(stage.world.nodes)[0]
        real = gke._compute_instanceGroupManagers_deleteInstances

        def protects(call: Any, asked: Any) -> Any:
            if any(url.endswith(first) for url in asked["instances"]):
                raise Refused(400, "resourceNotReady", "deletion protection")
            return real(call, asked)

        monkeypatch.setattr(gke, "_compute_instanceGroupManagers_deleteInstances", protects)
        ticks(stage, 60)
        assert list(stage.world.nodes) == [first]


def test_a_claim_whose_deletion_is_forbidden_is_asked_for_a_few_times() -> None:
    """As an instance of a group: its API server says no for two hours, and then no more."""
    with on_karpenter(pools=ONE, budgets=DAY) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=300))
        stage.minutes(5)
        server.fail(403, on="DELETE .*/nodeclaims/.*", times=999)
        ticks(stage, 120)
        assert 8 <= len(server.lines("DELETE .*/nodeclaims/.*")) <= 18
        server.forget_faults()
        ticks(stage, 15)
        assert stage.nodes("one") == 0


def test_a_release_that_was_lost_once_is_made_again_while_a_purchase_beside_it_stays_in_doubt() -> None:
    """One decision buys and gives back, and both answers are lost; the group of the purchase is unread from then on."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        stage.event(stage.submit("a", workload_class="batch", run_s=300))
        while not planning.preview(stage.deps, releases=True)[1].releases:
            stage.tick()
            stage.wait(60)
        gke.faults = [Fault("reset", when="before", method=name) for name in ("createInstances", "deleteInstances")]
        stage.submit("b", gpus=8, workload_class="batch", run_s=HOUR)
        with suppress(Retry):
            stage.tick()
        gke.refuses["eight"] = 503
        ticks(stage, 10)
        assert (stage.nodes("one"), len(gke.deleted())) == (0, 2)
