"""Cost of plans at a tenth of a fleet and at the whole of it: the exponent between them, beside a plain packer.

Usage: python bench/speed/bench_scale.py [--only ROW..]
Each row is planned in this process, CPU milliseconds, the least of a few rounds. The peer is ``first_fit_decreasing``
of ``bench_plan.py`` on the same objects, at the tenth. Exit code 1 where a row grows by more than its exponent, or
costs more than its share of the peer.

- pods of 126 shapes: 10,000 of them, 20 instance types, 1,000 nodes;
- gangs of 8: 300 gangs of 8 pods of 8 GPUs, each gang by itself, 1,000 nodes;
- pods all different: 10,000 pods of which no two have the same size, 1,000 nodes;
- a large fleet: 50,000 pods of 180 shapes, 5,000 nodes;
- claims of many terms: one pod with 8 volume claims, each of 6 terms of two labels. There is no plan of that: it is a
  finding, before any product of terms is made.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from math import log10
from typing import NamedTuple

from bench_plan import GIB, MODELS, NOW, SIZES, first_fit_decreasing, fleet, node_of, pods_of, waiting
from pilotlight.codec.kubernetes.bounds import Unreadable
from pilotlight.codec.kubernetes.pods.pod_placement import pod_terms
from pilotlight.codec.kubernetes.typed_objects import Metadata, Pod, PodSpec, PodStatus
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, Requirement, shape

ROUNDS = 3
PARTS = tuple(GpuRequest(count=1, milli=milli) for milli in (500, 250, 125))
REQUESTS = (*(GpuRequest(count=n) for n in SIZES), *PARTS)


def gangs(count: int) -> list[PodDemand]:
    """Gangs of eight pods, each on a node of its own."""
    return [
        PodDemand(uid=f"g{n}-{i}", namespace="ml", name=f"g{n}-{i}", shape=own, created_at=NOW - timedelta(seconds=n))
        for n in range(count)
        for own in (shape(gpu=GpuRequest(count=8), memory=16 * GIB, gang=Gang(key=f"g{n:05}", size=8)),)
        for i in range(8)
    ]


def different(count: int) -> list[PodDemand]:
    """Pods of sizes that no other has."""
    sizes = ((1_000 + n % 3_000, 4 * GIB + n * (1 << 20)) for n in range(count))
    return pods_of(
        [shape(gpu=REQUESTS[n % len(REQUESTS)], cpu_milli=cpu, memory=memory) for n, (cpu, memory) in enumerate(sizes)],
        count,
    )


def many(count: int) -> list[PodDemand]:
    """Pods of 180 shapes."""
    return pods_of(
        [shape(gpu=REQUESTS[n % len(REQUESTS)], cpu_milli=4_000 + n, memory=(4 + n % 60) * GIB) for n in range(180)],
        count,
    )


class Row(NamedTuple):
    """One measurement: its pods and nodes at full size; the most that it may grow by, and cost of the peer's."""

    pods: Callable[[int], list[PodDemand]]
    size: int
    nodes: int
    exponent: float = 1.1
    share: float = 0.06


ROWS = {
    "pods of 126 shapes": Row(lambda count: waiting()[:count], 10_000, 1_000, share=0.7),
    "gangs of 8": Row(gangs, 300, 1_000, share=1.2),
    "pods all different": Row(different, 10_000, 1_000, share=1.5),
    "a large fleet": Row(many, 50_000, 5_000),
}
CLAIMS_MS = 50.0


def main() -> int:
    """Print each row; exit 1 where one is over."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), help="rows by name")
    missed = [name for name in words.parse_args().only if not _row(name, ROWS[name])]
    began = time.process_time()
    told = _claims_of_many_terms()
    took = (time.process_time() - began) * 1000
    print(f"claims of many terms   {took:8.1f} ms (limit {CLAIMS_MS:.0f}): {told}")
    missed += ["claims of many terms"] * (took > CLAIMS_MS)
    print(f"MISSED: {', '.join(missed)}" if missed else "every limit is met")
    return int(bool(missed))


def _row(name: str, row: Row) -> bool:
    offered = fleet()
    tenth, whole = (_ms(*(row.pods(row.size // by), row.nodes // by)) for by in (10, 1))
    pods, nodes = row.pods(row.size // 10), [node_of(n, offered[n % len(offered)]) for n in range(row.nodes // 10)]
    began = time.process_time()
    first_fit_decreasing(pods, nodes, offered)
    peer = (time.process_time() - began) * 1000
    exponent, share = log10(whole / tenth), tenth / peer
    fine = exponent <= row.exponent and share <= row.share
    print(
        f"{name:22} {tenth:8.1f} ms at a tenth, {whole:8.1f} ms whole: exponent {exponent:4.2f} (most {row.exponent})"
        f"; {share:6.1%} of the peer's {peer:,.0f} ms at a tenth (most {row.share:.0%})",
        flush=True,
    )
    return fine


def _ms(pods: Sequence[PodDemand], count: int) -> float:
    offered = fleet()
    nodes = [node_of(n, offered[n % len(offered)]) for n in range(count)]
    policy = Policy(
        version=1,
        pools={o.pool: PoolPolicy(instance_type=o.instance_type, max=200_000) for o in offered},
        classes={"batch": ClassPolicy(gpu_models="any")},
    )
    pools = [PoolState(name=o.pool, desired=sum(n.pool == o.pool for n in nodes)) for o in offered]
    view = ClusterView(pending=tuple(pods), nodes=tuple(nodes))
    speeds = {"batch": dict.fromkeys(MODELS, 1.0)}
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        plan = plan_cluster(Look(view, pools, offered, policy, Memory(), NOW, throughput=speeds, explain=False))
        took.append((time.process_time() - began) * 1000)
        assert plan.usd_per_hour_after > Decimal(0)
    return min(took)


def _claims_of_many_terms() -> str:
    """The finding of a pod whose eight claims leave six alternatives each."""
    claims = [
        tuple(
            tuple(Requirement(key=f"{key}-{claim}", operator="In", values=(f"{term}",)) for key in ("zone", "rack"))
            for term in range(6)
        )
        for claim in range(8)
    ]
    pod = Pod(metadata=Metadata(name="p", namespace="ml"), spec=PodSpec(), status=PodStatus())
    try:
        pod_terms(pod, claims)
    except Unreadable as problem:
        return str(problem)
    return "no finding"


if __name__ == "__main__":
    sys.exit(main())
