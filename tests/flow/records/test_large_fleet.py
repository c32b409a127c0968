"""A day of 20,000 nodes and 50,000 decisions: no record of the books nears its limit, and nothing is lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any, cast

import pytest
from sized_store import Sized

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Offering
from pilotlight.facts.money.bill import Life
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe import instance_lifetimes, known_instances
from pilotlight.ports.state import LARGEST
from pilotlight.world.world_clock import VirtualClock

NODES, DECISIONS, TEAMS = 20_000, 50_000, 200
START = datetime(2026, 11, 1, tzinfo=UTC)
POOL, TYPE = "a-pool-with-a-name-of-usual-length", "g4dn.xlarge"


@dataclass
class Fleet:
    """As many nodes as ever, of which some go and others come; drawn names, teams and projects."""

    rng: Random
    nodes: tuple[Node, ...] = ()
    made: int = 0

    def observe(self) -> ClusterView:
        """What is lit."""
        return ClusterView(nodes=self.nodes)

    def describe(self) -> Sequence[PoolState]:
        """Nothing is on its way."""
        return (PoolState(name=POOL, desired=len(self.nodes)),)

    def turn(self, replaced: int, now: datetime) -> tuple[Node, ...]:
        """The oldest go, as many come and the rest is held by others; those that went."""
        gone, stay = self.nodes[:replaced], self.nodes[replaced:]
        begin = self.made
        self.made = begin + NODES - len(stay)
        self.nodes = (*stay, *(self._node(n, now) for n in range(begin, self.made)))
        return gone

    def _node(self, n: int, now: datetime) -> Node:
        team = self.rng.randrange(TEAMS)
        project = f"team-{team}-project-{self.rng.randrange(250)}"
        pod = BoundPod(uid=f"u{n}", namespace=project, name="p", gpu=GpuRequest(count=1), team=f"team-{team}")
        return Node(
            name=f"ip-10-{n // 65536}-{n // 256 % 256}-{n % 256}.europe-west4.compute.internal",
            instance=f"i-{self.rng.getrandbits(68):017x}",
            pool=POOL,
            instance_type=TYPE,
            capacity_type="on-demand",
            created_at=now,
            ready=True,
            devices=(1000,),
            pods=(pod,),
        )


@pytest.mark.slow
def test_no_record_of_a_large_fleets_day_nears_its_limit() -> None:
    """Looks, purchases, releases and midnight: no record nears the limit, every node-hour counts."""
    clock = VirtualClock(START)
    state, fleet = Sized(clock), Fleet(Random(7))
    price = Decimal("0.5")
    offering = Offering(
        pool=POOL, instance_type=TYPE, capacity_type="on-demand", gpu_model="T4", gpus=1, usd_per_hour=price
    )
    deps = Deps(
        name="c",
        cluster=cast(Any, fleet),
        pools=cast(Any, fleet),
        state=state,
        outbox=MemoryOutbox(),
        clock=clock,
        policy=Policy(version=1, pools={POOL: PoolPolicy(instance_type=TYPE)}),
        offerings=(offering,),
    )
    for replaced in (0, *[DECISIONS // 4] * 4):
        gone = fleet.turn(replaced, clock.now())
        instance_lifetimes.note_ended(deps, *(_life(node, clock.now()) for node in gone))
        known_instances.learn(deps, (), fleet.observe().nodes, clock.now())
        meter_nodes.count(deps)
        clock.advance(clock.elapsed_s() + 5 * 3600)
    meter_nodes.count(deps)
    found = meter_nodes.days(state, "c", START.date(), clock.now().date())
    hours = [sum(line.gpu_hours for line in day.lines) for day in found]
    assert hours == [NODES * 24, NODES]
    assert sum(line.usd for day in found for line in day.lines) == NODES * 25 * price
    assert max(state.largest.values()) < LARGEST * 0.6
    assert known_instances.find_instance(deps, fleet.nodes[-1].instance) is not None


def _life(node: Node, now: datetime) -> Life:
    return Life(instance=node.instance, node=node.name, pool=node.pool, since=node.created_at, ended_at=now)
