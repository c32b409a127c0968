"""Store operations of Pilotlight's own minutes, by nodes and budgets: the figures that ``cost-of-self`` goes by.

``python bench/money/own_operations.py [--minutes 60] [--kinds] [--json]`` runs a cluster of the built-in world, all of
whose nodes work, through a tick and a billing tick a minute, and counts what the store is asked for: calls, bytes,
documents read (a scan reads those it finds, and at least one), documents written and deleted, and DynamoDB's units
(4 KB of a consistent read, 1 KB of a write; a transaction's look before a conditional write counts on Firestore as a
read). Below the table: the exponent of each over the largest tenfold range of nodes, and the least squares of each by
nodes and budgets, as data/prices/self.yaml has them. ``--kinds`` prints the largest cluster's by family of records.

Causes, of a minute of 1,000 nodes and 10 budgets before holds moved on together (e40c8c14): of 2,559 calls 59 % were
accounts (read twice and written whole by each hold that moved on) and 39 % holds, one by one; of 9.2 MB read 73 %
accounts, 14 % the meter's hours, 12 % holds; of 3.6 MB written 90 % accounts, 10 % holds. With one budget its account
was 99 % of 32 MB written, and these grew with the square of the nodes.
"""

import argparse
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import NamedTuple

import msgspec
from rich.progress import track

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.bill import BillDay, BilledDay
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.billing.billed_days import DAY, LOOK_BACK
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.deps import Deps
from pilotlight.flow.reconcile import reconcile
from pilotlight.ports.state import Page, State, Stored
from pilotlight.state_schema.billing_records import BILL, CLOSED, METER
from pilotlight.units import Seconds
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

START = datetime(2026, 11, 10, tzinfo=UTC)
NODES, BUDGETS = (10, 100, 400, 1000), (1, 10)
COUNTED = ("calls", "reads", "writes", "deletes", "read_units", "write_units", "read_bytes", "written_bytes")


class CountingState:
    """Counts calls, documents, bytes and DynamoDB's units of what is asked, in all and by family."""

    def __init__(self, world: World, state: State | None = None) -> None:
        self._state: State = state or MemoryState(world.clock)
        self.counts: Counter[str] = Counter()
        self.kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def now(self) -> datetime:
        """The store's time."""
        return self._state.now()

    def get(self, key: str) -> Stored | None:
        """One document, there or not."""
        found = self._state.get(key)
        size = len(found.value) if found else 0
        self._count(key, calls=1, reads=1, read_units=max(1, math.ceil(size / 4096)), read_bytes=size)
        return found

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """A page: its documents, and its bytes together."""
        page = self._state.scan(prefix, after=after, limit=limit)
        size = sum(len(stored.value) for _, stored in page.items)
        units = max(1, math.ceil(size / 4096))
        self._count(prefix, calls=1, reads=max(1, len(page.items)), read_units=units, read_bytes=size)
        return page

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """One document written, and looked at before where it is conditional."""
        size, units = len(value), math.ceil((len(value) + len(key)) / 1024)
        self._count(key, calls=1, reads=if_version is not None, writes=1, write_units=units, written_bytes=size)
        return self._state.put(key, value, if_version=if_version, ttl_s=ttl_s)

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """One document deleted."""
        self._count(key, calls=1, reads=if_version is not None, deletes=1, write_units=1)
        self._state.delete(key, if_version=if_version)

    def clear(self) -> None:
        """Count from here on."""
        self.counts.clear()
        self.kinds.clear()

    def _count(self, key: str, **found: int) -> None:
        for counter in (self.counts, self.kinds[key.partition("/")[0]]):
            counter.update(found)


class Minute(NamedTuple):
    """Operations of a minute, in the mean, of a cluster with so many nodes and budgets."""

    nodes: int
    budgets: int
    counts: dict[str, float]
    kinds: dict[str, dict[str, float]]


def minute(nodes: int, budgets: int, minutes: int, days: int = 0, *, billed: bool = False) -> Minute:
    """The mean of so many minutes, with all nodes at work, now and on so many days before, which may be billed too."""
    price = Price(usd_per_hour=Decimal(1), source="bench", date="2026-11-01")
    kind = InstanceType(cloud="world", gpu_model="T4", gpus=1, boot_s=60.0, prices={"on-demand": price})
    speeds = {"batch": {"T4": 1.0}}
    catalog = Catalog(name="own", as_of=START, instance_types={"one": kind}, throughput=speeds)  # type: ignore[arg-type]
    teams = [f"team-{n}" for n in range(max(1, budgets))]
    policy = Policy(
        version=1,
        pools={"one": PoolPolicy(instance_type="one", max=nodes)},
        budgets=tuple(Budget(name=t, usd=Decimal(10**7), scope=BudgetScope(team=t)) for t in teams[:budgets]),
        classes={"batch": ClassPolicy(gpu_models="any", max_runtime=30 * 86400)},
    )
    world = World(catalog, [WorldPool(name="one", instance_type="one", capacity_type="on-demand")])
    state = CountingState(world)
    deps = Deps(
        name="own", cluster=WorldCluster(world), pools=WorldPools(world), state=state, outbox=MemoryOutbox(),
        clock=world.clock, policy=policy, offerings=offerings(policy, catalog)[0], throughput=speeds, mode="act",
    )  # fmt: skip
    for n in range(nodes):
        made = shape(gpu=GpuRequest(count=1), team=teams[n % len(teams)], workload_class="batch")
        pod = PodDemand(uid=f"u{n}", namespace="ml", name=f"p{n}", shape=made, created_at=world.clock.now())
        world.submit(pod, 10 * 86400.0)
    for at in range(20 + minutes):
        if at == 20:
            _remember(deps, days, billed=billed)
            state.clear()
        world.advance(world.now_s + 60.0)
        reconcile(deps, Tick(cluster="own"))
        billing(deps, Tick(cluster="own", what="billing"))
    if len(world.nodes) != nodes:
        raise SystemExit(f"{len(world.nodes)} nodes are lit, not {nodes}")
    means = {
        kind: {name: counts[name] / minutes for name in COUNTED}
        for kind, counts in (("", state.counts), *sorted(state.kinds.items()))
    }
    return Minute(nodes, budgets, means.pop(""), means)


def _remember(deps: Deps, days: int, *, billed: bool) -> None:
    """Write days before that were metered, and billed by node, as today is metered, with amounts of their own.

    The next minute reads them all, and those of the hour after it what that one kept of them.
    """
    CLOSED.delete(deps.state, deps.name)
    rng = random.Random(1)
    today = deps.clock.now().date()
    now = [] if not days else meter_nodes.days(deps.state, deps.name, today, today)
    for day, n in product(now, range(1, days + 1)):
        at = today - n * DAY
        lines = [
            msgspec.structs.replace(one, usd=_some(rng), gpu_hours=_some(rng), node=f"ip-10-{rng.randrange(2**24)}")
            for one in day.lines
        ]
        METER.write(deps.state, f"{deps.name}/{at}", msgspec.structs.replace(day, day=at, lines=tuple(lines)))
        rows = [
            BilledDay(
                day=at, usd=one.usd, list_usd=one.usd, effective_usd=one.usd, pool=one.pool, team=one.team,
                resource=one.node, service="Amazon Elastic Compute Cloud",
            )
            for one in lines if billed
        ]  # fmt: skip
        if billed:
            BILL.write(deps.state, f"{deps.name}/{at}/focus", BillDay(day=at, source="focus", rows=tuple(rows)))


def _some(rng: random.Random) -> Decimal:
    return Decimal(rng.randrange(10**12)).scaleb(-9)


def exponent(small: Minute, large: Minute, name: str) -> float:
    """The power of the nodes by which a count grows."""
    return math.log(max(large.counts[name], 1) / max(small.counts[name], 1)) / math.log(large.nodes / small.nodes)


def fitted(found: Sequence[Minute]) -> dict[str, tuple[float, float, float]]:
    """Least squares of each count: of a cluster, of a node more, and of a budget more."""
    rows = [(1.0, float(m.nodes), float(m.budgets)) for m in found]
    return {name: _solve(rows, [m.counts[name] for m in found]) for name in COUNTED}


def _solve(rows: Sequence[tuple[float, float, float]], values: Sequence[float]) -> tuple[float, float, float]:
    """The normal equations of three unknowns, by Cramer's rule."""
    left = [[sum(row[i] * row[j] for row in rows) for j in range(3)] for i in range(3)]
    right = [sum(row[i] * value for row, value in zip(rows, values, strict=True)) for i in range(3)]
    whole = _determinant(left)
    a, b, c = (
        _determinant([[right[i] if j == k else left[i][j] for j in range(3)] for i in range(3)]) for k in range(3)
    )
    return a / whole, b / whole, c / whole


def _determinant(m: Sequence[Sequence[float]]) -> float:
    return sum(
        m[0][i] * (m[1][(i + 1) % 3] * m[2][(i + 2) % 3] - m[1][(i + 2) % 3] * m[2][(i + 1) % 3]) for i in range(3)
    )


def measured(minutes: int) -> Iterator[Minute]:
    """Each size, with its progress."""
    for nodes, budgets in track(list(product(NODES, BUDGETS)), "clusters", disable=not sys.stderr.isatty()):
        yield minute(nodes, budgets, minutes)


def _tell_days(minutes: int) -> None:
    """What a day that is looked back on adds to each count, of each size, metered alone and billed too."""
    for billed in (False, True):
        found = []
        for nodes in NODES:
            fresh, old = minute(nodes, 1, minutes), minute(nodes, 1, minutes, LOOK_BACK.days, billed=billed)
            more = {name: (old.counts[name] - fresh.counts[name]) / LOOK_BACK.days for name in COUNTED}
            found += [Minute(nodes, budgets, more, {}) for budgets in BUDGETS]
            said = ", ".join(f"{name} {more[name]:.2f}" for name in ("reads", "read_units", "read_bytes"))
            print(f"{nodes:6} nodes, a day more{', billed too' if billed else ''}: {said}", flush=True)
        for name in ("reads", "read_units", "read_bytes"):
            base, node, _ = fitted(found)[name]
            print(f"{name}: {base:.3f} a day + {node:.6f} a day and node", flush=True)


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=int, default=60)
    options.add_argument("--days", action="store_true", help="also with what is looked back on: a day and node more")
    options.add_argument("--kinds", action="store_true")
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    if asked.days:
        _tell_days(asked.minutes)
        return
    found = list(measured(asked.minutes))
    fits = fitted(found)
    if asked.json:
        print(json.dumps({"minutes": [m._asdict() for m in found], "fitted": fits}, indent=1))
        return
    print(f"{'nodes':>6} {'budgets':>8} " + " ".join(f"{name:>13}" for name in COUNTED))
    for m in found:
        print(f"{m.nodes:6} {m.budgets:8} " + " ".join(f"{m.counts[name]:13.1f}" for name in COUNTED))
    for budgets in BUDGETS:
        large = max((m for m in found if m.budgets == budgets), key=lambda m: m.nodes)
        small = next(m for m in found if m.budgets == budgets and m.nodes * 10 == large.nodes)
        grown = (f"{exponent(small, large, name):13.2f}" for name in COUNTED)
        print(f"{'power':>6} {budgets:8} " + " ".join(grown))
    for kind, counts in sorted(found[-1].kinds.items(), key=lambda item: -item[1]["read_bytes"]) if asked.kinds else ():
        print(f"{kind:>15} " + " ".join(f"{counts[name]:13.1f}" for name in COUNTED))
    for name, (base, node, budget) in fits.items():
        print(f"{name}: {base:.2f} + {node:.4f} a node + {budget:.3f} a budget")


if __name__ == "__main__":
    main()
