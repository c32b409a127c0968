"""Assumptions of a replay beside its trace: capacity, boots, notices, shortages, and the way that jobs are placed."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.tools.replay.placement_shaping import Shaping
from pilotlight.units import Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.scheduling.scoring import Scoring

REGISTERED_S = 20.0
"""For how long before it is ready a node is in the cluster, where homes are given to it then: a network to set up, a
device plugin to come. Elsewhere nothing is done meanwhile, and a node is there when it is ready.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Assumptions of a replay beside the trace: all that its options set.

    Spot is to be had in ``zones`` as it was recorded there; ``falls_back``: beside it on-demand may be bought. Of the
    share ``vanish`` of jobs the pods are deleted at their end.
    """

    capacity_type: CapacityType = "on-demand"  # What is bought.
    falls_back: bool = False  # On-demand too, beside spot.
    zones: tuple[ZoneHistory, ...] = ()  # Recorded spot; empty: as much as is asked for.
    placement: Shaping = "homes"  # How pods are kept off dear nodes.
    boot_s: Seconds | None = None  # Seconds of a boot; None: the catalogue's.
    standby_boot_s: Seconds | None = None  # Seconds of a start from standby; None: no nodes stand by.
    standby_usd_per_hour: Decimal = Decimal("0.011")  # Of a stopped node's disk.
    detect_s: Seconds = 10.0  # Seconds until Pilotlight looks at what happened.
    notice_s: Seconds = 0.0  # Seconds from a notice to the end; 0: no notice.
    shortage: float = 0.0  # Share of purchases that find no capacity, 0 to 1.
    seed: int = 0  # Of all that is drawn.
    state: Literal["memory", "sqlite"] = "memory"  # The store that decisions are kept in.
    sample_s: Seconds | None = None  # Seconds between samples for charts; None: no samples.
    vanish: float = 0.0  # Share of jobs whose pods are deleted at their end, 0 to 1.
    scoring: Scoring = "least-allocated"  # How the cluster's scheduler prefers one node to another.
    pulls: tuple[tuple[str, Seconds], ...] = ()  # Images, each with the seconds of its pull on a new node.
    join_spread_s: Seconds = 0.0  # Boots take up to so much longer, each by a draw of its own.

    def faults(self) -> Faults:
        """The world's unkindness in this scenario."""
        return Faults(
            boot_s=self.boot_s,
            shortage=self.shortage,
            notice_s=self.notice_s,
            reclaim=not self.zones,
            registered_s=REGISTERED_S if self.placement == "homes" else 0.0,
            join_spread_s=self.join_spread_s,
            pulls=dict(self.pulls),
        )
