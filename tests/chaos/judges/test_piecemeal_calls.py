"""The judges of a call that asks for each of its nodes by itself, as Karpenter's claims are posted."""

from decimal import Decimal

import pytest
from harness.judges.invariants import Invariants
from harness.judges.strangers_books import StrangersBooks
from harness.scene import CATALOG, START

from pilotlight.facts.decisions import Buy, Plan, Record
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World

POOL = "one-on-demand"


class Bench:
    """Three pods that wait, and the judge of whoever buys for them."""

    def __init__(self) -> None:
        policy = Policy(version=1, pools={POOL: PoolPolicy(instance_type="one", max=9)})
        books = StrangersBooks(policy)
        self.world = World(CATALOG, [WorldPool(name=POOL, instance_type="one", max=9)], log=books.log)
        self.judges = Invariants(self.world, policy, books, "c")
        for name in "abc":
            made = shape(gpu=GpuRequest(count=1), workload_class="batch", team="red")
            pod = PodDemand(uid=name, namespace="red", name=name, shape=made, created_at=START)
            self.world.submit(pod, 3600)

    def decides(self, decision: str, *pods: str) -> None:
        """A decision to buy a node for each of these pods is written, and left open."""
        buy = Buy(
            pool=POOL,
            offering=POOL,
            zone="",
            count=len(pods),
            usd_per_hour=Decimal(1),
            boot_s=60,
            demands=pods,
            shapes=(),
            why="",
        )
        plan = Plan(buys=(buy,))
        record = Record(id=decision, cluster="c", flow="f", trigger="t", at=START, status="open", plan=plan, steps=())
        self.judges.purchases.recorded("w0", record)

    def launches(self, decision: str, nodes: int) -> None:
        """A call of that decision asks for so many nodes, one after the other."""
        with self.judges.piecemeal("w0"):
            for _ in range(nodes):
                with self.judges.launching("w0", decision, POOL, ""):
                    self.world.launch(POOL)

    def broken(self) -> list[str]:
        """What the judge found."""
        return [each.text for each in self.judges.violations]


@pytest.fixture
def bench() -> Bench:
    """A bench."""
    return Bench()


def test_each_node_is_the_call_s_own_purchase_s(bench: Bench) -> None:
    """The second node is not taken for another decision's that is open: that one's pod may be bought for."""
    bench.decides("lost", "a")
    bench.decides("mine", "b", "c")
    bench.launches("mine", 2)
    bench.decides("again", "a")
    bench.launches("again", 1)
    assert bench.broken() == []


def test_a_purchase_that_is_whole_is_not_made_again(bench: Bench) -> None:
    """Both its nodes boot, though each was asked for by itself: another for one of its pods is a double."""
    bench.decides("mine", "b", "c")
    bench.launches("mine", 2)
    bench.decides("again", "b")
    bench.launches("again", 1)
    assert any("while" in line and "boots for it" in line for line in bench.broken())


def test_what_is_bought_instead_of_machines_that_their_cloud_gave_up_is_no_double(bench: Bench) -> None:
    """They never joined, and bill until their cloud has ended them: they are no room for the pods."""
    bench.decides("mine", "b", "c")
    bench.launches("mine", 2)
    bench.judges.purchases.given_up |= bench.world.nodes.keys()
    bench.decides("again", "b")
    bench.launches("again", 1)
    assert bench.broken() == []


def test_a_call_that_comes_late_is_late_with_every_node(bench: Bench) -> None:
    """Nobody could call off the second node either; the next call is in time."""
    bench.decides("mine", "b", "c")
    bench.judges.unguarded("w0", "grow")
    bench.launches("mine", 2)
    assert bench.judges.apart["late_launches"] == 2
    bench.decides("next", "a")
    bench.launches("next", 1)
    assert (bench.judges.apart["late_launches"], bench.broken()) == (2, [])
