"""Which types a job may use, decided at its submit from what is known then: node affinity added at admission."""

from collections.abc import Collection
from decimal import Decimal
from typing import Literal

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.catalog import Catalog
from pilotlight.facts.trace import Job
from pilotlight.replay.trace import types_for

Placement = Literal["none", "taint", "affinity", "gated"]


class Affinity:
    """Narrows a job to the type on which its share of a full node is cheapest: small jobs do not pin big nodes.

    Of the catalogue's types only ``sold`` ones are considered, where they are given.
    """

    def __init__(self, catalog: Catalog, capacity_type: CapacityType, sold: Collection[str] | None = None) -> None:
        self.catalog = catalog
        self._capacity_type = capacity_type
        self._sold = catalog.instance_types if sold is None else sold
        self._known: dict[tuple[int, int, tuple[str, ...]], str | None] = {}

    def type_for(self, job: Job) -> str | None:
        """The type, or None where no type can hold the job."""
        key = (job.gpus, job.gpu_milli, job.models)
        if key not in self._known:
            types = [t for t in types_for(job, self.catalog) if t in self._sold]
            self._known[key] = min(types, key=lambda t: (self._share(job, t), t), default=None)
        return self._known[key]

    def _share(self, job: Job, name: str) -> tuple[Decimal, Decimal]:
        """Dollars an hour of a whole node when it is bought for this job alone, then per GPU."""
        kind = self.catalog.instance_types[name]
        price = kind.prices[self._capacity_type].usd_per_hour + kind.extra_usd_per_hour
        return price * -(-job.gpus // kind.gpus), price / kind.gpus
