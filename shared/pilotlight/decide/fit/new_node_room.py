"""Room of new nodes, before any other pod: less what DaemonSets take, and as many volumes as nodes of the pool attach.

DaemonSets are read from the cluster, beside the policy's.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Daemon, Node, Offering, Resources
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import PodShape, is_gpu
from pilotlight.units import quantity


def with_daemons(offerings: Sequence[Offering], daemons: Sequence[Daemon], policy: Policy) -> list[Offering]:
    """The offerings less what DaemonSets take of a new node. What a pool's ``daemonsets`` name is in both: the larger
    of the two counts.
    """
    return [_less(one, daemons, policy.pools.get(one.pool)) for one in offerings]


def leave_room_for_daemons(work: Work) -> None:
    """Sell each offering without the room that DaemonSets take."""
    work.offerings = with_daemons(work.offerings, work.view.daemons, work.policy)


def _less(offering: Offering, daemons: Sequence[Daemon], pool: PoolPolicy | None) -> Offering:
    ours = [one.takes for one in daemons if _selects(one.takes, offering)]
    if not ours:
        return offering
    taken = _sum(ours)
    for name, text in pool.daemonsets.items() if pool is not None else ():
        taken[name] -= int(-(-quantity(text) * (1000 if name == "cpu" else 1) // 1))
    free = offering.resources
    resources = Resources(
        cpu_milli=max(0, free.cpu_milli - max(0, taken["cpu"])),
        memory=max(0, free.memory - max(0, taken["memory"])),
        ephemeral=max(0, free.ephemeral - max(0, taken["ephemeral-storage"])),
        pods=max(0, free.pods - max(0, taken["pods"])),
        other=tuple((name, max(0, have - max(0, taken[name]))) for name, have in free.other),
        ports=(*free.ports, *(port for one in ours if one.near for port in one.near.ports)),
    )
    gpus = max(0, taken[offering.resource])
    slices = {name: max(0, have - max(0, taken[name])) for name, have in offering.slices.items()}
    return replace(offering, resources=resources, slices=slices, whole_gpus=max(0, len(offering.devices) - gpus))


def _selects(takes: PodShape, offering: Offering) -> bool:
    return selects(offering.labels, takes.terms) and untolerated_taint(offering.taints, takes.tolerations) is None


def _sum(shapes: Sequence[PodShape]) -> dict[str, int]:
    """Millicores, bytes and counts by resource name."""
    total: dict[str, int] = defaultdict(int)
    for one in shapes:
        amounts: Mapping[str, int] = {
            "cpu": one.cpu_milli,
            "memory": one.memory,
            "ephemeral-storage": one.ephemeral,
            "pods": 1,
            **dict(one.other),
            **({one.gpu.resource: one.gpu.count} if is_gpu(one.gpu.resource) else {}),
        }
        for name, amount in amounts.items():
            total[name] += amount
    return total


def limit_volumes(work: Work) -> None:
    """Sell no more room for volumes than nodes of the pool have."""
    work.offerings = with_attach_limits(work.offerings, work.view.nodes)


def with_attach_limits(offerings: Sequence[Offering], nodes: Sequence[Node]) -> Sequence[Offering]:
    """The offerings, each with as much room for volumes as the known nodes of its pool have at least."""
    least: dict[str, dict[str, int]] = {}
    for node in (n for n in nodes if n.attachable):
        for name, count in node.attachable.items():
            limits = least.setdefault(node.pool, {})
            limits[name] = min(count, limits.get(name, count))
    return [_roomy(o, least[o.pool]) if o.pool in least else o for o in offerings]


def _roomy(offering: Offering, limits: Mapping[str, int]) -> Offering:
    other = (*offering.resources.other, *sorted(limits.items()))
    return replace(offering, resources=replace(offering.resources, other=other))
