"""Claims that cannot be read, NodePools that do not answer, and pools of claims that become gates."""

from dataclasses import replace
from typing import Any

import pytest
from api_store import Json
from karpenter_claims import POOL, KarpenterWorld, claim_pools
from msgspec.structs import replace as with_fields
from stage import Stage
from test_on_karpenter import BUDGET, DELETE, holds, looks, on_karpenter, tries

from pilotlight.units import HOUR

NODE_POOLS = "GET .*/nodepools"


def spoil(server: KarpenterWorld, pool: str) -> str:
    """Another hand writes a field of a pool's claim that nobody can read; the claim's name."""
    (claim,) = [one for one in server.claims() if one["metadata"]["labels"][POOL] == pool]
    change(server, claim, spec={**claim["spec"], "expireAfter": 7})
    return str(claim["metadata"]["name"])


def change(server: KarpenterWorld, claim: Json, **fields: Any) -> None:
    """Write some of a claim anew."""
    server.store.write(server.store.resource("nodeclaims"), {**claim, **fields})


def test_a_claim_that_cannot_be_read_stops_no_other_pool() -> None:
    """The other pool buys and gives back; its own machine is held for, is told by the claim's name, and goes idle once
    that is mended."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR / 2))
        looks(stage, server, 5)
        name = spoil(server, "one")
        stage.event(stage.submit("b", workload_class="batch", gpus=8, run_s=HOUR / 2))
        looks(stage, server, 60)
        assert (holds(stage), tries(server)) == (["one"], {"one": 1, "eight": 1})
        assert len(server.lines(DELETE)) == 1
        (told,) = {alert.why for alert in stage.alerts if alert.what == "pool one cannot be read whole"}
        assert told.startswith(f"NodeClaim {name} cannot be read: ")
        (claim,) = server.claims()
        change(server, claim, spec={**claim["spec"], "expireAfter": "Never"})
        looks(stage, server, 10)
        assert (holds(stage), server.claims()) == ([], [])


def test_what_waits_goes_elsewhere_while_a_claim_cannot_be_read() -> None:
    """That passes by no minutes: somebody has to mend it."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        looks(stage, server, 5)
        spoil(server, "one")
        stage.event(stage.submit("b", workload_class="batch", run_s=HOUR))
        looks(stage, server, 5)
        assert (stage.nodes("one"), stage.nodes("eight"), sorted(holds(stage))) == (1, 1, ["eight", "one"])


def test_node_pools_that_do_not_answer_end_no_release() -> None:
    """An idle machine goes; a pod waits five minutes for them, and gets its machine as soon as they answer."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR / 2))
        looks(stage, server, 20)
        server.fail(503, on=NODE_POOLS, times=9_999)
        looks(stage, server, 40)
        assert (holds(stage), server.claims(), len(server.lines(DELETE))) == ([], [], 1)
        stage.event(stage.submit("b", workload_class="batch", run_s=HOUR))
        looks(stage, server, 3)
        assert tries(server) == {"one": 1}
        server.forget_faults()
        looks(stage, server, 3)
        assert tries(server) == {"one": 2}


@pytest.mark.parametrize("alone", [False, True])
def test_a_pool_of_claims_that_becomes_a_gate_gives_back_what_is_idle(alone: bool) -> None:
    """Its work runs on, its dollars are held all the while, and then its machine goes: Karpenter would end none."""
    with on_karpenter(budgets=(BUDGET,)) as (stage, server):
        stage.event(stage.submit("a", workload_class="batch", run_s=HOUR / 2))
        looks(stage, server, 5)
        become_gate(stage, server, alone=alone)
        looks(stage, server, 20)
        assert (holds(stage), len(server.claims()), server.lines(DELETE)) == (["one"], 1, [])
        looks(stage, server, 40)
        assert (holds(stage), server.claims(), len(stage.world.finished)) == ([], [], 1)
        assert tries(server) == {"one": 1}


def become_gate(stage: Stage, server: KarpenterWorld, *, alone: bool) -> None:
    """A person writes ``karpenter:one``, and gives nothing back first; ``alone``: no other pool is left."""
    policy = stage.deps.policy
    gate = with_fields(policy.pools["one"], cluster_pool="karpenter:one")
    pools = {"one": gate} if alone else {**policy.pools, "one": gate}
    stage.deps = replace(stage.deps, policy=with_fields(policy, pools=pools), pools=claim_pools(server, pools))
