"""Two gated NodePools and a pool of ours on one budget, with limits of their owners as people write them."""

from contextlib import suppress
from decimal import Decimal
from random import Random

import pytest
from api_server import ApiServer, api_server
from gated_site import GATED, NODE, GatedSite
from harness.judges.gate_judge import GateJudge

from pilotlight.errors import PilotlightError
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.units import quantity

LIMITS = ("8k", "400", "24", "0.5", "1e2", "20", "7", "8500m", None)
TWO = PoolPolicy(cluster_pool="karpenter:two", instance_type="eight", max=20)
OWN = PoolPolicy(instance_type="one", max=60)
CLOSED = {"disruption": {"budgets": [{"nodes": "0"}]}}


@pytest.mark.parametrize("seed", range(20))
def test_two_gates_stay_within_one_budget_and_their_owners_limits(seed: int) -> None:
    """Machines of both, and nodes of ours, never take more than its dollars, whatever the weights; and what Karpenter
    counts of a pool never passes what its owner had written."""
    chance = Random(f"two gates/{seed}")
    with api_server(ApiServer()) as server:
        usd = chance.randint(1, 6) * NODE + chance.randint(0, 500)
        budgets = (Budget(name="all", usd=usd, period="month"),)
        site = GatedSite(server, 0, pools={"gpu": GATED, "two": TWO, "own": OWN}, budgets=budgets)
        karpenter, judge, did = site.karpenter, GateJudge(Decimal(usd)), list[str]()
        owners = {pool: chance.choice(LIMITS) for pool in ("gpu", "two")}
        for pool, limit in owners.items():
            karpenter.pool(pool, "eight", limit=limit, spec={**CLOSED, "weight": chance.choice((1, 3, 100))})
        site.tick()
        for n in range(30):
            does, pool = (
                chance.choice(("buy", "buy", "join", "lose", "end", "pod", "look", "look")),
                chance.choice(("gpu", "two")),
            )
            did.append(f"{does} {pool}")
            stay = [claim for claim in karpenter.claims(pool) if not karpenter._marked(claim)]
            if does == "buy":
                karpenter.launch(pool, chance.randint(1, 4))
            elif does == "join":
                karpenter.register(pool)
            elif does == "lose" and stay:
                karpenter.drain(pool)
                judge.lost(1)
            elif does == "end":
                karpenter.end(pool)
            elif does == "pod":
                site.pod(f"p{n}")
            elif does == "look":
                with suppress(PilotlightError):
                    site.tick()
                judge.looked()
            machines = {
                f"{each}/{claim['metadata']['name']}": bool(claim["status"].get("nodeName"))
                for each in owners
                for claim in karpenter.claims(each)
            }
            judge.sees(machines, site.stage.world.clock.now(), len(site.stage.world.nodes), did)
            for each, limit in owners.items():
                counted = sum(not karpenter._marked(claim) for claim in karpenter.claims(each)) * karpenter.gpus
                assert limit is None or counted <= quantity(limit)
        assert judge.found == []
