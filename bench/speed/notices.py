"""Cost of a notice: CPU seconds from its arrival to what was decided and done, in a warm process.

Usage: python bench/speed/notices.py [NODES...]      (10, 100 and 500 spot nodes, each with a pod that saves when asked)

Exit code 1 where one takes more than a second.
"""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from statistics import median

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.facts.messages import InterruptionNotice, Tick
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.settings import Settings
from pilotlight.wiring import App
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
MOST_S = 1.0
NOTICES = 7


def stage(nodes: int) -> tuple[World, App]:
    """A world of so many spot nodes at work, and a deployment that acts on it."""
    price = Price(usd_per_hour=Decimal(1), source="made up", date="2026-11-01")
    kind = InstanceType(cloud="world", gpu_model="T4", gpus=1, prices={"spot": price, "on-demand": price})
    catalog = Catalog(name="bench", as_of=START, instance_types={"one": kind})
    pools = {"cheap": PoolPolicy(instance_type="one", capacity_type="spot", max=2 * nodes)}
    rules = ClassPolicy(capacity_types=("spot",), gpu_models="any", max_runtime=3600)
    policy = Policy(version=1, pools=pools, classes={"batch": rules})
    world = World(
        catalog,
        [WorldPool.from_policy(name, pool) for name, pool in pools.items()],
        faults=Faults(reclaim=False),
        clock=VirtualClock(START),
    )
    made = shape(gpu=GpuRequest(count=1), checkpoint_s=600)
    for n in range(nodes):
        world.submit(
            PodDemand(
                uid=f"u{n}",
                namespace="ml",
                name=f"p{n}",
                shape=made,
                created_at=START,
                checkpoint_takes_s=20,
                grace_s=30,
            ),
            1e7,
        )
    world.launch("cheap", nodes)
    world.advance(3600)
    clock = world.clock
    app = App(
        Settings(mode="act"),
        cluster=WorldCluster(world),
        pools=WorldPools(world),
        clock=clock,
        state=MemoryState(clock),
        outbox=MemoryOutbox(),
        policy=policy,
        catalog=catalog,
    )
    app.receive("capacity_reconcile", encode(Tick(cluster="local"), id="warm"), {})
    return world, app


def spent(world: World, app: App, node: str) -> float:
    """CPU seconds of one notice about a node that the cloud takes in two minutes."""
    ends = world.moment(world.interrupt(node, 120.0))
    notice = InterruptionNotice(
        cluster="local", instance=node, kind="spot-interruption", cloud="world", at=world.clock.now(), deadline=ends
    )
    body = encode(notice, id=f"notice-{node}")
    began = time.process_time()
    answer = app.receive("spot_interruption", body, {})
    taken = time.process_time() - began
    assert answer.status == 200, answer.body
    assert answer.body["did"], answer.body
    return taken


def main(words: Sequence[str]) -> int:
    """Print a line a size."""
    worst = 0.0
    for nodes in [int(word) for word in words] or (10, 100, 500):
        world, app = stage(nodes)
        _, *warm = [spent(world, app, node) for node in list(world.nodes)[: NOTICES + 1]]
        worst = max(worst, *warm)
        print(f"{nodes:5,} nodes: {median(warm):.3f} CPU s a notice, {max(warm):.3f} at most (limit {MOST_S:g})")
    return int(worst > MOST_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
