"""Scores by which a scheduler prefers one of the nodes that will do.

Source: Kubernetes 1.36, plugins NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation, as a cluster has
them where nobody configures them: over CPU and memory, weight 1 each. ImageLocality, of the same weight, gives a node
that has a pod's image up to 100 more: all of them where the image's size times the share of nodes that have it is
1,000 MiB or more, as it is of most images for GPUs. So it is counted here: 100 or none. Its other plugins score all
nodes here alike.
None scores GPUs: that is why it prefers large nodes, and empty ones. Of more than 100 nodes that would do the real one
scores a part only; here all are scored.
"""

from typing import Literal

from pilotlight.facts.capacity import Resources
from pilotlight.facts.workload import PodShape
from pilotlight.world.world_nodes import Room

Scoring = Literal["most-allocated", "spread", "least-allocated"]
"""The largest share of GPUs in use, the smallest one, or the scores of kube-scheduler's defaults."""

BEST = 100
UNSAID_CPU_MILLI, UNSAID_MEMORY = 100, 200 << 20
"""What a pod that asks for none counts as having, where nodes are scored by what is left of them."""


def score(shape: PodShape, room: Room, whole: Resources) -> int:
    """What a node scores of 200 for such a pod: the room it has left with it, and how alike CPU and memory are used.

    ``whole`` is its allocatable.
    """
    return _least_allocated(shape, room, whole) + _balanced(shape, room.free, whole)


def _least_allocated(shape: PodShape, room: Room, whole: Resources) -> int:
    free, (no_cpu, no_memory) = room.free, room.unsaid
    cpu_milli = whole.cpu_milli - free.cpu_milli + no_cpu * UNSAID_CPU_MILLI + (shape.cpu_milli or UNSAID_CPU_MILLI)
    memory = whole.memory - free.memory + no_memory * UNSAID_MEMORY + (shape.memory or UNSAID_MEMORY)
    parts = [(cpu_milli, whole.cpu_milli), (memory, whole.memory)]
    left = [max(0, have - used) * BEST // have for used, have in parts if have]
    return sum(left) // len(left) if left else 0


def _balanced(shape: PodShape, free: Resources, whole: Resources) -> int:
    """75 where a pod leaves the balance as it is, more where it mends it. None for a pod that asks for neither."""
    if not shape.cpu_milli and not shape.memory:
        return 0
    cpu_milli, memory = whole.cpu_milli - free.cpu_milli, whole.memory - free.memory
    after = _balance(cpu_milli + shape.cpu_milli, memory + shape.memory, whole)
    return BEST // 2 + (BEST // 2 + after - _balance(cpu_milli, memory, whole)) // 2


def _balance(cpu_milli: int, memory: int, whole: Resources) -> int:
    if not whole.cpu_milli or not whole.memory:
        return BEST
    deviation = abs(min(1.0, cpu_milli / whole.cpu_milli) - min(1.0, memory / whole.memory)) / 2
    return int((1 - deviation) * BEST)


def unsaid(shape: PodShape) -> tuple[int, int]:
    """1 for CPU and 1 for memory where a pod asks for none."""
    return int(not shape.cpu_milli), int(not shape.memory)


_MASK = 2**64 - 1


def chance(draw: int, seq: int) -> int:
    """A number of a node for a pod of this draw, the same in every run: of nodes that score alike the least wins."""
    mixed = (draw + seq * 0x9E3779B97F4A7C15) & _MASK
    return ((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93) & _MASK
