"""Families of one worker a cluster, and of the brakes that people set."""

from datetime import datetime

import msgspec

from pilotlight.codec.records import Format
from pilotlight.state_schema.table import Table


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a cluster's lease; ``fence`` grows with every holder."""

    fence: int
    holder: str


class Fence(msgspec.Struct, frozen=True, kw_only=True):
    """The last fence that a holder had."""

    fence: int


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Why and since when every effect of a pool, or of all, is stopped."""

    reason: str
    at: datetime


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a pool that a person allowed beyond ``approve_over``."""

    nodes: int
    decision: str


LEASE = Table("lease", Format(Held), 60.0)
"""``<cluster>``: who works on it."""

# Schema 1 was the bare number.
FENCE = Table("fence", Format(Fence, lambda number: {"fence": int(number)}))
"""``<cluster>``."""

PAUSE = Table("pause", Format(Pause))
"""``<cluster>/<pool or *>``."""

APPROVED = Table("approved", Format(Approval), 3600.0)
"""``<cluster>/<pool>``."""
