"""What a plan works with while it is made: pods of one shape that wait, and nodes that it buys for them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pilotlight.decide.capacity.planned_nodes import Bin
from pilotlight.facts.budget import Terms
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Buy
from pilotlight.facts.workload import PodDemand, PodShape


@dataclass(slots=True)
class Group:
    """Pods of one shape that still wait."""

    shape: PodShape
    pods: list[PodDemand]


@dataclass(slots=True)
class Purchase:
    """Nodes of one offering bought so far in this plan, for whom. ``terms`` are one a node, where there are budgets."""

    offering: Offering
    bins: list[Bin] = field(default_factory=list)
    terms: list[Terms] = field(default_factory=list)
    demands: list[str] = field(default_factory=list)
    shapes: set[str] = field(default_factory=set)
    gangs: set[str] = field(default_factory=set)
    workload_class: str = ""

    def charge(self, shape: PodShape, pods: Sequence[PodDemand]) -> None:
        """These pods are whom it is for, too."""
        self.demands += [p.uid for p in pods]
        self.shapes.add(shape.key)
        self.workload_class = shape.workload_class
        if shape.gang is not None:
            self.gangs.add(shape.gang.key)

    def buy(self) -> Buy:
        """The call that makes it."""
        return Buy(
            pool=self.offering.pool,
            offering=self.offering.name,
            zone=self.offering.zone,
            count=len(self.bins),
            usd_per_hour=self.offering.usd_per_hour,
            boot_s=self.offering.boot_s,
            demands=tuple(self.demands),
            shapes=tuple(sorted(self.shapes)),
            workload_class=self.workload_class,
            gangs=tuple(sorted(self.gangs)),
            terms=tuple(self.terms),
            why=f"{len(self.demands)} waiting pod{'s' if len(self.demands) != 1 else ''} without room",
        )


def by_age(pod: PodDemand) -> tuple[datetime, str]:
    """The order of pods in a group: the oldest first."""
    return pod.created_at, pod.uid
