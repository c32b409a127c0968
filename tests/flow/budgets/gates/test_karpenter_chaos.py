"""A gate under chance: Karpenter buys, replaces, drains and loses machines, other hands write limits; dollars hold."""

from collections.abc import Iterator
from decimal import Decimal
from random import Random

import pytest
from api_server import ApiServer, api_server
from gated_site import GATED, NODE, GatedSite
from karpenter import GPU

from pilotlight.facts.money.budgets import Balance
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.budgets import budget_accounts, budget_holds

STEPS = 25


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server."""
    with api_server() as found:
        yield found


class Walk:
    """A site on which things happen, but for what docs/guides/karpenter.md says may pass a budget until a look."""

    def __init__(self, server: ApiServer, seed: int) -> None:
        self.chance = Random(seed)
        pools = {"gpu": GATED, "own": PoolPolicy(instance_type="one", max=60)}
        self.site = GatedSite(server, self.chance.randint(1, 6), pools=pools)
        self.surge = self.chance.choice(("0", "1", "50%"))
        spec = {"disruption": {"budgets": [{"nodes": self.surge}]}}
        self.site.karpenter.pool("gpu", "eight", limit=self.chance.choice(("400", "24")), spec=spec)
        self.site.tick()
        self.pods, self.did = 0, list[str]()

    def step(self) -> None:
        """Something happens; sometimes Pilotlight looks, and then all is paid for."""
        does = self.chance.choice(
            (self.buy, self.buy, self.join, self.join, self.drift, self.lose, self.gone, self.git, self.own, self.look)
        )
        does()
        self.did.append(f"{does.__name__} {self.site.karpenter.machines('gpu')} of {self.site.karpenter.limit('gpu')}")
        assert self.due() <= self.limit(), (self.surge, self.did)

    def due(self) -> Decimal:
        """Settled and held, and what machines take that nothing is held for yet."""
        karpenter = self.site.karpenter
        unheld = [c for c in karpenter.claims("gpu") if c["metadata"]["name"] not in self.seen()]
        return sum((b.total for b in self.balances()), Decimal(0)) + len(unheld) * (NODE - 20)

    def seen(self) -> set[str]:
        """Claims of the machines that something is held for."""
        held = {entry.value.instance for entry in budget_accounts.every_hold(self.site.deps)}
        claims = self.site.karpenter.claims("gpu")
        return {c["metadata"]["name"] for c in claims if c["status"]["providerID"].rpartition("/")[2] in held}

    def balances(self) -> list[Balance]:
        """What the one budget has settled and held."""
        return list(budget_holds.balances(self.site.deps, self.site.deps.now()).balances)

    def limit(self) -> Decimal:
        """Its dollars."""
        return self.balances()[0].meter.limit

    def buy(self) -> None:
        """Karpenter has pods for some machines."""
        self.site.karpenter.launch("gpu", self.chance.randint(1, 4))

    def join(self) -> None:
        """Machines become nodes."""
        self.site.karpenter.register("gpu")

    def drift(self) -> None:
        """One is replaced, where the NodePool lets one be."""
        karpenter = self.site.karpenter
        claims = karpenter.claims("gpu")
        marked = sum(karpenter._marked(claim) for claim in claims)
        allowed = -(-len(claims) // 2) if self.surge == "50%" else int(self.surge)
        if marked < allowed and any(c["status"].get("nodeName") and not karpenter._marked(c) for c in claims[:1]):
            karpenter.replace("gpu")

    def lose(self) -> None:
        """One is lost unforeseen, and a look comes before another is bought in its place."""
        if any(not self.site.karpenter._marked(claim) for claim in self.site.karpenter.claims("gpu")):
            self.site.karpenter.drain("gpu")
            self.look()

    def gone(self) -> None:
        """What drains is gone."""
        self.site.karpenter.end("gpu")

    def git(self) -> None:
        """A tool writes a value of its own, and Karpenter does not come to buy by it before the next look."""
        store = self.site.server.store
        store.patch(store.resource("nodepools"), ("", "gpu"), {"spec": {"limits": {GPU: "400"}}})
        self.look()

    def own(self) -> None:
        """A pod comes for the pool that we buy for."""
        self.pods += 1
        self.site.pod(f"p{self.pods}")

    def look(self) -> None:
        """The schedule ticks."""
        self.site.tick()


@pytest.mark.parametrize("seed", range(16))
def test_machines_stay_within_the_dollars(server: ApiServer, seed: int) -> None:
    """After every step what is settled, held and still to be held for stays within the budget, but for named gaps."""
    walk = Walk(server, seed)
    for _ in range(STEPS):
        walk.step()
