"""One billing tick over a thousand nodes, twenty-one budgets and a month of closed days: its CPU, its records."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Offering
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.deps import Deps
from pilotlight.world.world_clock import VirtualClock

NODES, TEAMS, DAYS = 1000, 20, 30
START = datetime(2026, 11, 1, tzinfo=UTC)


def main() -> None:
    """Print the figures."""
    clock = VirtualClock(START)
    state = MemoryState(clock)
    fleet: Any = Fleet()  # As much of both ports as a look of the meter asks.
    deps = Deps(
        name="c",
        cluster=fleet,
        pools=fleet,
        state=state,
        outbox=MemoryOutbox(),
        clock=clock,
        policy=Policy(version=1, pools={"a100": PoolPolicy(instance_type="p4d")}, budgets=budgets()),
        offerings=(offering(),),
    )
    for _ in range(DAYS * 2):
        billing(deps, Tick(cluster="c", what="billing"))
        clock.advance(clock.elapsed_s() + 12 * 3600)
    took = []
    for _ in range(5):
        clock.advance(clock.elapsed_s() + 60)
        before = time.process_time()
        billing(deps, Tick(cluster="c", what="billing"))
        took.append(time.process_time() - before)
    sizes = {room: max(len(s.value) for _, s in state.scan(f"{room}/").items) for room in ("metering", "meter")}
    print(
        f"{NODES} nodes, {len(deps.policy.budgets)} budgets, {DAYS} days: {min(took) * 1000:.0f} ms CPU a tick;",
        end=" ",
    )
    print(f"largest records {sizes['metering'] / 1024:.0f} KB (part of today), {sizes['meter'] / 1024:.0f} KB (a day)")


def budgets() -> tuple[Budget, ...]:
    """One for all, and one for each team."""
    teams = [Budget(name=f"t{n}", scope=BudgetScope(team=f"t{n}"), usd=Decimal(10**7)) for n in range(TEAMS)]
    return (Budget(name="all", usd=Decimal(10**9)), *teams)


def offering() -> Offering:
    """A node of eight GPUs."""
    price = Decimal("32.77")
    return Offering(
        pool="a100", instance_type="p4d", capacity_type="on-demand", gpu_model="A100", gpus=8, usd_per_hour=price
    )


class Fleet:
    """A cluster that is always as full."""

    def __init__(self) -> None:
        self.nodes = tuple(node(n) for n in range(NODES))

    def observe(self) -> ClusterView:
        """All nodes, with two teams' pods on each."""
        return ClusterView(nodes=self.nodes)

    def describe(self) -> Sequence[PoolState]:
        """Nothing is on its way."""
        return (PoolState(name="a100", desired=NODES),)


def node(n: int) -> Node:
    """A node with six of its GPUs held."""
    pods = tuple(
        BoundPod(uid=f"u{n}-{k}", namespace="ml", name="p", gpu=GpuRequest(count=3), team=f"t{(n + k) % TEAMS}")
        for k in range(2)
    )
    return Node(
        name=f"node-{n}",
        instance=f"i-{n:017x}",
        pool="a100",
        instance_type="p4d",
        capacity_type="on-demand",
        created_at=START - timedelta(hours=1),
        ready=True,
        devices=(0,) * 6 + (1000,) * 2,
        pods=pods,
    )


if __name__ == "__main__":
    main()
