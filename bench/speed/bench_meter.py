"""One billing tick over a fleet's nodes, budgets and a month of closed days: its CPU, its exponent, its records.

Usage: python bench/speed/bench_meter.py [--rows N] [--fleet NODES BUDGETS]

Causes of what is left at 5,000 nodes and 500 budgets: today's parts are counted, who holds each node is read, and the
month's days are summed by budget.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import log10
from typing import Any, NamedTuple

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
from pilotlight.ports.state import Stored
from pilotlight.world.world_clock import VirtualClock

DAYS, TICKS = 29, 5
START = datetime(2026, 11, 1, tzinfo=UTC)
MOST = 1.1
"""The exponent that a row may have over its tenfold range."""


class Row(NamedTuple):
    """A fleet: its nodes and budgets, and the milliseconds that a tick of it may take."""

    nodes: int
    budgets: int
    limit_ms: float


ROWS = (Row(1_000, 21, 60.0), Row(500, 50, 45.0), Row(5_000, 500, 300.0))
"""The last is ten times the one before it."""


def main() -> int:
    """Print each row, and the exponent of the last two; exit 1 where one is over."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rows", type=int, default=len(ROWS), help="only the first rows")
    words.add_argument(
        "--fleet", type=int, nargs=2, metavar=("NODES", "BUDGETS"), help="only this one, without a limit"
    )
    asked = words.parse_args()
    if asked.fleet:
        tick(Row(asked.fleet[0], asked.fleet[1], float("inf")))
        return 0
    took = [tick(row) for row in ROWS[: asked.rows]]
    fine = all(each <= row.limit_ms for each, row in zip(took, ROWS, strict=False))
    if len(took) == len(ROWS):
        exponent = log10(took[-1] / took[-2])
        print(f"from {ROWS[-2].nodes} to {ROWS[-1].nodes:,} nodes: exponent {exponent:.2f} (most {MOST})")
        fine = fine and exponent <= MOST
    print("every limit is met" if fine else "MISSED")
    return int(not fine)


def tick(row: Row) -> float:
    """CPU milliseconds of a tick, the least of a few; printed."""
    clock = VirtualClock(START)
    state = MemoryState(clock)
    fleet: Any = Fleet(row)  # As much of both ports as a look of the meter asks.
    deps = Deps(
        name="c",
        cluster=fleet,
        pools=fleet,
        state=state,
        outbox=MemoryOutbox(),
        clock=clock,
        policy=Policy(version=1, pools={"a100": PoolPolicy(instance_type="p4d")}, budgets=budgets(row.budgets)),
        offerings=(offering(),),
    )
    for _ in range(DAYS):
        billing(deps, Tick(cluster="c", what="billing"))
        clock.advance(clock.elapsed_s() + 24 * 3600)
    clock.advance(clock.elapsed_s() + 12 * 3600)
    billing(deps, Tick(cluster="c", what="billing"))
    took = []
    for _ in range(TICKS):
        clock.advance(clock.elapsed_s() + 60)
        before = time.process_time()
        billing(deps, Tick(cluster="c", what="billing"))
        took.append((time.process_time() - before) * 1000)
    sizes = {room: [len(s.value) for s in _records(state, room)] for room in ("metering", "meter")}
    print(
        f"{row.nodes:,} nodes, {row.budgets} budgets, {DAYS} days: {min(took):.0f} ms CPU a tick "
        f"(most {row.limit_ms:.0f}); largest records {max(sizes['metering']) / 1024:.0f} KB (part of today), "
        f"{max(sizes['meter']) / 1024:.0f} KB (a day); in all {len(sizes['metering'])} parts, "
        f"{sum(sizes['metering']) / 1024**2:.1f} MB, and {sum(sizes['meter']) / 1024**2:.1f} MB of days",
        flush=True,
    )
    return min(took)


def _records(state: MemoryState, room: str) -> Iterator[Stored]:
    """All records of a family."""
    after = ""
    while True:
        page = state.scan(f"{room}/", after=after)
        yield from (stored for _, stored in page.items)
        after = page.next
        if not after:
            return


def budgets(count: int) -> tuple[Budget, ...]:
    """One for all, and one for each team."""
    teams = [Budget(name=f"t{n}", scope=BudgetScope(team=f"t{n}"), usd=Decimal(10**7)) for n in range(count - 1)]
    return (Budget(name="all", usd=Decimal(10**9)), *teams)


def offering() -> Offering:
    """A node of eight GPUs."""
    price = Decimal("32.77")
    return Offering(
        pool="a100", instance_type="p4d", capacity_type="on-demand", gpu_model="A100", gpus=8, usd_per_hour=price
    )


class Fleet:
    """A cluster that is always as full."""

    def __init__(self, row: Row) -> None:
        self.nodes = tuple(node(n, row.budgets - 1) for n in range(row.nodes))

    def observe(self) -> ClusterView:
        """All nodes, with two teams' pods on each."""
        return ClusterView(nodes=self.nodes)

    def describe(self) -> Sequence[PoolState]:
        """Nothing is on its way."""
        return (PoolState(name="a100", desired=len(self.nodes)),)


def node(n: int, teams: int) -> Node:
    """A node with six of its GPUs held."""
    pods = tuple(
        BoundPod(
            uid=f"u{n}-{k}",
            namespace="ml",
            name="p",
            gpu=GpuRequest(count=3),
            team=f"t{(n + k) % teams}",
            started_at=START - timedelta(minutes=50),
        )
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
    sys.exit(main())
