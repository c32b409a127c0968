"""Volumes that a node can attach: as many as the known nodes of its pool could at least."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node, Offering


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
