"""The instance scorer of article S3, kept as printed for comparison: it never asks whether the pod fits.

``select_instance_type`` there scores each type by GPUs x GPU memory / price, times the GPUs for training and once more
over the price for inference. Its golden values (8 x 320 / 32.77 x 8 = 624.962 for p4d.24xlarge, training) are I1 of
the requirements. Pilotlight's own choice is ``decide.choose``.
"""

from decimal import Decimal
from typing import Literal, NamedTuple

from pilotlight.units import UsdPerHour

Workload = Literal["training", "inference", "other"]


class Machine(NamedTuple):
    """A machine as the scorer looks at it. ``memory_gib`` is that of all its GPUs together."""

    gpus: int
    memory_gib: int
    usd_per_hour: UsdPerHour


def article_score(workload: Workload, machine: Machine) -> Decimal:
    """The score of one machine; higher is better there."""
    gpus, memory_gib, price = machine
    base = gpus * memory_gib / price
    return {"training": base * gpus, "inference": base / price, "other": base}[workload]
