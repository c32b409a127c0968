"""Calls that a cloud answers with "not now" were not made: they are told as that, and purchases tried less often."""

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from civo_server import Fault
from gke_answers import Refused
from stage import Stage
from test_on_gke import on_gke
from test_on_gke_closed import BOTH
from test_on_gke_queue import on_queue
from test_on_karpenter import memory, on_karpenter

from pilotlight.adapters.pools.gke import google_rest
from pilotlight.errors import Retry
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import ledger
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR

ONE = {"one": PoolPolicy(instance_type="one", max=2)}
DAY = (Budget(name="all", usd=Decimal(1000), period="day"),)
GKE_SAYS = {409: "resourceInUseByAnotherResource", 429: "rateLimitExceeded"}


@pytest.fixture(autouse=True)
def _not_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))


def half_an_hour(stage: Stage) -> None:
    """A pod comes; then a tick a minute."""
    with suppress(Retry):
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
    for _ in range(30):
        stage.wait(60)
        with suppress(Retry):
            stage.tick()


def told(stage: Stage) -> str:
    """What people were told."""
    return " ".join(alert.why for alert in stage.alerts)


def known(stage: Stage) -> str:
    """What is known of its steps, as ``pilotlight why`` says it."""
    return " ".join(step.note for record in ledger.filed_records(stage.deps.state, "c") for step in record.steps)


@pytest.mark.parametrize("status", GKE_SAYS)
def test_a_group_that_is_busy_for_ever_is_asked_six_times_in_half_an_hour(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time was no lost answer: nothing is held for it, and people hear the status and how often it was tried."""
    with on_gke(pools=ONE, budgets=DAY) as (stage, gke):

        def refuse(call: Any, asked: Any) -> None:
            raise Refused(status, GKE_SAYS[status], "not now")

        monkeypatch.setattr(gke, "_compute_instanceGroupManagers_createInstances", refuse)
        half_an_hour(stage)
        asked = [verb for verb, _ in gke.changes()].count("createInstances")
        assert (2 <= asked <= 6, list(HOLD.scan(stage.deps.state, ""))) == (True, [])
        assert f"with {status}: {GKE_SAYS[status]}" in told(stage)
        assert "tried 3 times" in known(stage)
        assert "its answer was lost" not in told(stage)


@pytest.mark.parametrize("status", [409, 429])
def test_a_claim_that_is_not_taken_for_ever_is_posted_six_times_in_half_an_hour(status: int) -> None:
    """Its name is not there after a 409: nobody made it before, and none is believed to be on its way."""
    with on_karpenter(pools=ONE, budgets=DAY) as (stage, server):
        server.fail(status, on="POST .*/nodeclaims", times=99)
        half_an_hour(stage)
        assert (2 <= len(server.lines("POST .*/nodeclaims")) <= 6, stage.alerts[0].kind) == (True, "capacity-denied")
        assert (server.claims(), list(HOLD.scan(stage.deps.state, ""))) == ([], [])
        assert str(status) in told(stage)
        assert "tried 3 times" in known(stage)
        assert "lost" not in told(stage)
        (rest,) = memory(stage).backoffs
        assert rest.tries == len(server.lines("POST .*/nodeclaims"))


@pytest.mark.parametrize("status", [409, 429])
def test_a_queue_that_takes_no_request_is_asked_six_times_in_half_an_hour(status: int) -> None:
    """As a claim that is not taken."""
    with on_queue(pools=ONE, budgets=DAY) as (stage, site):
        site.server.fail(status, on="POST .*/provisioningrequests", times=99)
        half_an_hour(stage)
        assert (2 <= len(site.server.lines("POST .*/provisioningrequests")) <= 6, site.requests()) == (True, [])
        assert str(status) in told(stage)
        assert "tried 3 times" in known(stage)
        assert "lost" not in told(stage)


def test_a_group_that_loses_every_purchase_is_left_for_another_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers 503, and nothing is there each time: from the second in a row it rests, and the pod gets a node."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        real = gke._compute_instanceGroupManagers_createInstances

        def refuse(call: Any, asked: Any) -> Any:
            if gke._pool(call) == "one":
                raise Refused(503, "backendError", "down")
            return real(call, asked)

        monkeypatch.setattr(gke, "_compute_instanceGroupManagers_createInstances", refuse)
        half_an_hour(stage)
        asked = [verb for verb, _ in gke.changes()].count("createInstances")
        assert (asked, stage.nodes("one"), stage.nodes("eight")) == (3, 0, 1)
        assert [entry.value.terms.pool for entry in HOLD.scan(stage.deps.state, "")] == ["eight"]


def test_a_cloud_that_fails_between_the_look_and_the_call_is_left_for_another_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each look sees the cluster, and the read before each purchase of one pool does not: nothing is sent there, from
    the second in a row it rests, and the pod gets a node elsewhere."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        real, seen = gke._pool, set[Any]()

        def flaps(call: Any) -> str:
            pool = real(call)
            now = (pool, stage.world.now_s, call.method)
            if pool == "one" and now in seen:
                raise Refused(503, "backendError", "down")
            seen.add(now)
            return pool

        monkeypatch.setattr(gke, "_pool", flaps)
        half_an_hour(stage)
        made = [body["instances"][0]["name"] for verb, body in gke.changes() if verb == "createInstances"]
        assert (len(made), stage.nodes("one"), stage.nodes("eight")) == (1, 0, 1)


def test_a_release_that_is_answered_with_not_now_is_told_as_that() -> None:
    """It is sent again at every look, as one whose answer was lost is, which people are not told of it."""
    with on_gke(pools=ONE, budgets=DAY) as (stage, gke):
        stage.event(stage.submit("a", workload_class="batch", run_s=300))
        stage.minutes(5)
        gke.stuck_deletions["one"] = 409
        for _ in range(15):
            stage.wait(60)
            with suppress(Retry):
                stage.tick()
        assert "with 409: backendError: not now, and the node is still there" in told(stage)
        assert "lost" not in told(stage)


def test_one_answer_of_not_now_delays_its_pod_by_one_look() -> None:
    """A pool that is worked on for a moment: the next look asks again, and no dearer pool is bought in."""
    with on_karpenter(budgets=DAY) as (stage, server):
        server.fail(429, on="POST .*/nodeclaims")
        pod = stage.submit("a", workload_class="batch", run_s=2 * HOUR)
        with pytest.raises(Retry):
            stage.event(pod)
        stage.wait(5)
        stage.event(pod)
        assert [claim["metadata"]["labels"]["pilotlight.dev/pool"] for claim in server.claims()] == ["one"]


@pytest.mark.parametrize("status", [409, 503])
def test_a_purchase_that_fails_gives_up_its_own_pool_alone(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pods wait for two pools: the cheaper pool's call fails, and that look asks for the other's node."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        real = gke._compute_instanceGroupManagers_createInstances

        def refuse(call: Any, asked: Any) -> Any:
            if gke._pool(call) == "one":
                raise Refused(status, "backendError", "not now")
            return real(call, asked)

        monkeypatch.setattr(gke, "_compute_instanceGroupManagers_createInstances", refuse)
        stage.submit("small", run_s=2 * HOUR)
        with suppress(Retry):
            stage.event(stage.submit("large", gpus=8, run_s=2 * HOUR))
        assert (stage.world.launches, stage.nodes("eight")) == (1, 1)


def test_a_cloud_that_says_slow_down_is_asked_no_more_by_that_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is said to an account: the other pool's purchase waits for the next look."""
    with on_gke(pools=BOTH, budgets=DAY) as (stage, gke):
        gke.faults = [Fault((429, "<p>"), method="createInstances")]
        stage.submit("small", run_s=2 * HOUR)
        with suppress(Retry):
            stage.event(stage.submit("large", gpus=8, run_s=2 * HOUR))
        assert ([verb for verb, _ in gke.changes()], stage.world.launches) == (["createInstances"], 0)
