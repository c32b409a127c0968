"""The flows with Karpenter's claims as the cloud: lost answers, shortages, and machines that never join."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from karpenter_claims import KarpenterWorld, claim_pools, on_claims
from stage import Stage

from pilotlight.errors import Retry
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults

BUDGET = Budget(name="all", usd=Decimal(1000), period="day", hard=True)
POST, DELETE = "POST .*/nodeclaims", "DELETE .*/nodeclaims"


@contextmanager
def on_karpenter(**options: Any) -> Iterator[tuple[Stage, KarpenterWorld]]:
    """A stage whose nodes are those of claims."""
    stage = Stage(**options)
    with on_claims(stage.world) as (server, _):
        stage.deps = replace(stage.deps, pools=claim_pools(server, stage.deps.policy.pools))
        yield stage, server


def test_a_pod_gets_its_node_and_the_node_goes_when_it_ends() -> None:
    """One claim by name; after its run and its idle time that very one is deleted."""
    with on_karpenter() as (stage, server):
        stage.event(stage.submit("a", run_s=600))
        stage.minutes(25)
        assert (len(server.lines(POST)), len(server.lines(DELETE)), server.claims()) == (1, 1, [])
        assert (stage.world.launches, stage.nodes("one"), len(stage.world.finished)) == (1, 0, 1)


@pytest.mark.parametrize("what", ["reset", "cut", 500, "truncated"], ids=str)
def test_an_answer_that_is_lost_buys_nothing_twice(what: Any) -> None:
    """The claim is there or it is not: a second delivery and the ticks after it buy one node in all."""
    with on_karpenter() as (stage, server):
        pod = stage.submit("a", run_s=3600)
        server.fail(what, on=POST)
        try:
            stage.event(pod)
        except Retry:
            stage.event(pod)
        stage.minutes(10)
        assert (stage.world.launches, stage.nodes("one"), len(server.claims())) == (1, 1, 1)


def test_a_shortage_deletes_the_claim_and_its_pod_goes_elsewhere() -> None:
    """At the next looks: the offering rests by what Karpenter said, nothing is held for it, and the pod runs."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.world.set_faults(Faults(shortage=1.0))
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        stage.world.set_faults(Faults())
        assert (server.claims(), stage.world.launches) == ([], 0)
        stage.minutes(15)
        assert (stage.nodes("one"), stage.nodes("eight"), stage.world.launches) == (0, 1, 1)
        assert len(list(HOLD.scan(stage.deps.state, ""))) == 1


def waiting(stage: Stage, server: KarpenterWorld) -> str:
    """A batch pod is bought for, and its claim is not launched."""
    server.slow = True
    stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
    server.slow = False
    (name,) = server.stuck
    return name


def test_a_claim_that_waits_for_ever_is_called_off_and_its_pod_goes_elsewhere() -> None:
    """Karpenter would launch it whenever its provider has one: after five minutes it is deleted by its name."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        name = waiting(stage, server)
        stage.minutes(4)
        assert [claim["metadata"]["name"] for claim in server.claims()] == [name]
        stage.minutes(11)
        assert server.lines(DELETE) == [f"DELETE /apis/karpenter.sh/v1/nodeclaims/{name}"]
        assert (stage.nodes("one"), stage.nodes("eight"), stage.world.launches) == (0, 1, 1)
        assert len(list(HOLD.scan(stage.deps.state, ""))) == 1


def test_one_that_is_launched_while_it_is_called_off_stays() -> None:
    """Its version has changed since the look: it is not deleted, and its pod runs there."""
    pools = {"one": PoolPolicy(instance_type="one", max=1)}
    with on_karpenter(pools=pools, faults=Faults(boot_s=5.0)) as (stage, server):
        name = waiting(stage, server)

        def late() -> None:
            server.stuck.clear()
            server.launch()

        server.before(DELETE, late)
        for _ in range(12):
            with suppress(Retry):
                stage.minutes(1)
        assert server.lines(DELETE) != []
        assert [claim["metadata"]["name"] for claim in server.claims()] == [name]
        assert (stage.nodes("one"), stage.world.launches) == (1, 1)


def test_a_machine_that_never_joins_goes_and_its_pod_gets_another() -> None:
    """It bills until it is called off by its instance; then the pod is bought for again."""
    with on_karpenter(faults=Faults(boot_s=7 * HOUR)) as (stage, server):
        server.dead = True
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        (first,) = server.claims()
        stage.world.set_faults(Faults())
        server.dead = False
        stage.minutes(40)
        assert first["metadata"]["name"] not in [claim["metadata"]["name"] for claim in server.claims()]
        assert sum(len(node.gpu_pods) for node in stage.deps.cluster.observe().nodes) == 1


def test_a_node_pool_that_is_opened_is_left_alone() -> None:
    """Somebody lets Karpenter buy by it: nothing is asked for there, and both ways out are said."""
    pools = {"one": PoolPolicy(instance_type="one", max=3)}
    with on_karpenter(pools=pools) as (stage, server):
        server.node_pool("one", limit="8")
        answer = stage.event(stage.submit("a"))
        assert server.lines(POST) == []
        assert "limits nvidia.com/gpu to 0" in str(answer)
