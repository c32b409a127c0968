"""Which types a job may use, decided at its submit from what is known then: node affinity added at admission."""

from collections.abc import Collection
from decimal import Decimal
from typing import Literal

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.tools.replay.traces.trace_file import types_for
from pilotlight.tools.replay.traces.trace_job import Job

Shaping = Literal["homes", "none", "affinity", "gated"]


class Affinity:
    """Narrows a job to the types on which its share of a full node is cheapest: small jobs do not pin big nodes.

    They are the type of which a node for this job alone costs least, and those of its model that cost as much a GPU.
    Of the catalogue's types only ``sold`` ones are considered, where they are given.
    """

    def __init__(self, catalog: Catalog, capacity_type: CapacityType, sold: Collection[str] | None = None) -> None:
        self.catalog = catalog
        self._capacity_type = capacity_type
        self._sold = catalog.instance_types if sold is None else sold
        self._known: dict[tuple[int, int, tuple[str, ...]], tuple[str, ...]] = {}

    def types_of(self, job: Job) -> tuple[str, ...]:
        """The types; none where none can hold the job."""
        key = (job.gpus, job.gpu_milli, job.models)
        if key not in self._known:
            types = [t for t in types_for(job, self.catalog) if t in self._sold]
            best = min(types, key=lambda t: (self._alone(job, t), self._each(t), t), default="")
            self._known[key] = tuple(t for t in types if self._alike(t, best))
        return self._known[key]

    def _alike(self, one: str, best: str) -> bool:
        kinds = self.catalog.instance_types
        return kinds[one].gpu_model == kinds[best].gpu_model and self._each(one) == self._each(best)

    def _alone(self, job: Job, name: str) -> Decimal:
        """Dollars an hour of the nodes when they are bought for this job alone."""
        kind = self.catalog.instance_types[name]
        return self._each(name) * kind.gpus * -(-job.gpus // kind.gpus)

    def _each(self, name: str) -> Decimal:
        """Dollars an hour of one GPU."""
        kind = self.catalog.instance_types[name]
        return (kind.prices[self._capacity_type].usd_per_hour + kind.extra_usd_per_hour) / kind.gpus
