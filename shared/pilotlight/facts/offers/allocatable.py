"""Resources of an empty node for pods: a machine less what kubelet, system and DaemonSets keep."""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

from pilotlight.facts.capacity import Resources
from pilotlight.facts.offers.catalog import InstanceType
from pilotlight.facts.workload import is_gpu, part_of_gpu
from pilotlight.units import milli, quantity, whole

_GIB = 2**30
MEMORY_RESERVE = ((4, 25), (4, 20), (8, 10), (112, 6), (None, 2))
"""(GiB, percent of them kept back), in steps. Source: GKE docs, "Plan GKE node sizes", memory reservations."""
CPU_RESERVE = ((1, 600), (1, 100), (2, 50), (None, 25))
"""(cores, hundredths of a percent kept back). Source: the same page; EKS AMIs reserve by the same steps."""
EVICTION_MEMORY = 100 * 2**20
"""The kubelet's default hard eviction threshold memory.available; that of nodefs is a tenth of the disk."""
NONE: Mapping[str, str] = MappingProxyType({})


def predicted_allocatable(
    machine: InstanceType, slices: Mapping[str, int], daemonsets: Mapping[str, str] = NONE
) -> Resources:
    """Resources that an empty node will offer: the machine less kubelet and system reserves, less its DaemonSets.

    Of ``slices`` those that are no GPUs count here.
    """
    cpu, memory, disk = milli(machine.cpu), whole(machine.memory), whole(machine.ephemeral)
    taken = {name: quantity(amount) for name, amount in daemonsets.items()}

    def less(amount: int, name: str, scale: int = 1) -> int:
        return max(0, amount - int(-(-taken.get(name, Decimal(0)) * scale // 1)))

    return Resources(
        cpu_milli=less(cpu - _stepped(cpu, CPU_RESERVE, 1000, 10_000), "cpu", 1000),
        memory=less(memory - _stepped(memory, MEMORY_RESERVE, _GIB, 100) - EVICTION_MEMORY, "memory"),
        ephemeral=less(disk - disk // 10, "ephemeral-storage"),
        pods=less(machine.pods, "pods"),
        other=tuple((name, less(count, name)) for name, count in sorted(slices.items()) if not is_gpu(name)),
    )


def gpus_for_pods(
    machine: InstanceType, slices: Mapping[str, int], daemonsets: Mapping[str, str] = NONE
) -> tuple[int, dict[str, int]]:
    """The GPUs that an empty node's pods may have whole, and the parts of GPUs; its DaemonSets already taken off.

    Where ``slices`` name parts of GPUs, its GPUs are cut up: whole are those that ``slices`` names.
    """
    own = machine.gpu_resource
    offered = {own: machine.gpus, **{name: count for name, count in slices.items() if is_gpu(name)}}
    if own not in slices and any(part_of_gpu(name) for name in slices):
        offered[own] = 0
    for name, amount in daemonsets.items():
        if name in offered:
            offered[name] = max(0, offered[name] - whole(amount))
    return offered.pop(own), offered


def _stepped(amount: int, steps: tuple[tuple[int | None, int], ...], unit: int, whole_share: int) -> int:
    """The part of an amount that is kept back, step by step, rounded up."""
    kept, left = 0, amount
    for width, share in steps:
        part = left if width is None else min(left, width * unit)
        kept += part * share
        left -= part
    return -(-kept // whole_share)
