"""Cost of one plan: 10,000 waiting pods of 126 shapes, 20 instance types, 1,000 nodes; beside a plain packer.

The peer is what autoscalers do without grouping: each pod by itself, the largest first, into the first node with room,
else a new node of the type that costs least for it. Both plan the same objects in the same process.

Causes, of one plan by cProfile: 44 % buying nodes (of all, 12 % filling them), 15 % room on lit nodes, 12 % the order
of pods (``in_units``), 11 % demand learnt of 7,233 purchases, 4 % why idle nodes stay.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product

from pilotlight.decide.fit.fit import Allowed, Bin, of_node, of_offering
from pilotlight.decide.offers.selection import reason_never_fits
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Offering, Resources
from pilotlight.facts.labels import GPU_MODEL, INSTANCE_TYPE, POOL
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, PodShape, Requirement, shape
from pilotlight.units import MILLI_PER_GPU

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PODS, NODES, ROUNDS = 10_000, 1_000, 7
PEER_ROUNDS = 1
"""The peer takes seconds a round."""
LIMIT_MS = 60.0
"""Of a quiet machine, as bench_edges.py of the same run tells it."""
MODELS = {"T4": "0.526", "A10G": "1.01", "V100": "3.06", "A100": "4.10", "H100": "12.29"}
SIZES = (1, 2, 4, 8)
GIB = 1 << 30


def main() -> int:
    """Print both; exit 1 when a plan takes longer than it may."""
    offered, pods = fleet(), waiting()
    nodes = lit(offered)
    view = ClusterView(pending=tuple(pods), nodes=tuple(nodes))
    pools = [PoolState(name=o.pool, desired=sum(n.pool == o.pool for n in nodes)) for o in offered]
    policy = Policy(
        version=1,
        pools={o.pool: PoolPolicy(instance_type=o.instance_type, max=20_000) for o in offered},
        classes={"batch": ClassPolicy(gpu_models="any")},
    )
    speeds = {"batch": dict.fromkeys(MODELS, 1.0)}

    def ours() -> tuple[int, int]:
        plan = plan_cluster(Look(view, pools, offered, policy, Memory(), NOW, throughput=speeds, explain=False))
        placed = sum(len(g.pods) for g in plan.pods if g.verdict in ("fits", "bought"))
        return placed, sum(b.count for b in plan.buys)

    print(f"{PODS:,} pods of {len({p.shape.key for p in pods})} shapes, {len(offered)} types, {NODES:,} nodes, CPU ms")
    mine = _show("pilotlight: plan_cluster", ours)
    _show("peer: first-fit-decreasing, pod by pod", lambda: first_fit_decreasing(pods, nodes, offered), PEER_ROUNDS)
    print(f"limit {LIMIT_MS:.0f} ms: {'met' if mine <= LIMIT_MS else 'MISSED'}")
    return int(mine > LIMIT_MS)


def fleet() -> list[Offering]:
    """Five models in four sizes."""
    return [
        Offering(
            pool=f"{model}x{size}".lower(),
            instance_type=f"{model}x{size}",
            capacity_type="on-demand",
            gpu_model=model,
            gpus=size,
            usd_per_hour=Decimal(usd) * size,
            resources=Resources(cpu_milli=12_000 * size, memory=96 * GIB * size, pods=110),
            labels={GPU_MODEL: model, POOL: f"{model}x{size}".lower(), INSTANCE_TYPE: f"{model}x{size}"},
        )
        for (model, usd), size in product(MODELS.items(), SIZES)
    ]


def lit(offered: Sequence[Offering]) -> list[Node]:
    """Nodes of all types, three of four full, the rest with one GPU in use or none."""
    return [node_of(n, offered[n % len(offered)]) for n in range(NODES)]


def node_of(n: int, of: Offering) -> Node:
    """One of them, by its number."""
    used = of.gpus if n % 4 else min(n % 3, of.gpus)
    pod = BoundPod(uid=f"r{n}", namespace="ml", name=f"r{n}", gpu=GpuRequest(count=used))
    return Node(
        name=f"n{n:04}",
        pool=of.pool,
        instance_type=of.instance_type,
        capacity_type=of.capacity_type,
        created_at=NOW - timedelta(hours=2),
        ready=True,
        devices=(0,) * used + (MILLI_PER_GPU,) * (of.gpus - used),
        free=of.resources,
        labels=of.labels,
        pods=(pod,) if used else (),
        idle_since=None if used else NOW,
    )


def waiting() -> list[PodDemand]:
    """Pods of 126 shapes: 7 requests x 6 wishes for a model x 3 memory sizes."""
    gpus = [GpuRequest(count=n) for n in SIZES] + [GpuRequest(count=1, milli=m) for m in (500, 250, 125)]
    wishes: list[tuple[tuple[Requirement, ...], ...]] = [()]
    wishes += [((Requirement(key=GPU_MODEL, operator="In", values=(model,)),),) for model in MODELS]
    shapes = [
        shape(gpu=gpu, terms=terms, cpu_milli=4000, memory=gib * GIB)
        for gpu, terms, gib in product(gpus, wishes, (4, 16, 64))
    ]
    return pods_of(shapes, PODS)


def pods_of(shapes: Sequence[PodShape], count: int) -> list[PodDemand]:
    """Pods of the shapes in turn, that came within ten minutes."""
    return [
        PodDemand(
            uid=f"u{n}",
            namespace="ml",
            name=f"p{n}",
            shape=shapes[n % len(shapes)],
            created_at=NOW - timedelta(seconds=n % 600),
        )
        for n in range(count)
    ]


def first_fit_decreasing(
    pods: Sequence[PodDemand], nodes: Sequence[Node], offered: Sequence[Offering]
) -> tuple[int, int]:
    """The peer. Pods placed, and nodes bought."""
    bins = [of_node(node) for node in nodes]
    allowed, placed, fresh = Allowed(), 0, 0
    for pod in sorted(pods, key=lambda p: -p.shape.gpu.total_milli):
        found = _first(pod.shape, bins, allowed)
        if found is None:
            able = [o for o in offered if reason_never_fits(pod.shape, o) is None]
            best = min(able, key=lambda o: (o.usd_per_hour / min(o.gpus, pod.shape.gpu.count), o.name))
            found = of_offering(best, "new", best.name)
            bins.append(found)
            fresh += 1
        found.put(pod.shape, 1)
        placed += 1
        if not any(found.devices):
            bins.remove(found)
    return placed, fresh


def _first(wanted: PodShape, bins: Sequence[Bin], allowed: Allowed) -> Bin | None:
    return next((b for b in bins if b.room_for(wanted) and allowed(wanted, b)), None)


def _show(what: str, once: Callable[[], tuple[int, int]], rounds: int = ROUNDS) -> float:
    """The median CPU milliseconds of a few rounds, printed with what came of it."""
    took = []
    for _ in range(rounds):
        began = time.process_time()
        placed, bought = once()
        took.append((time.process_time() - began) * 1000)
    median = statistics.median(took)
    print(
        f"{what:42} median {median:8.1f}  min {min(took):8.1f}  max {max(took):8.1f}"
        f"  {PODS / median * 1000:10,.0f} pods/s  ({placed:,} placed, {bought:,} nodes bought)"
    )
    return median


if __name__ == "__main__":
    raise SystemExit(main())
