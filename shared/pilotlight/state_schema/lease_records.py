"""Families of a cluster's worker: who works on it, and the fence that it has."""

from datetime import datetime

import msgspec

from pilotlight.state_schema.table import Format, Table


class LeaseHolder(msgspec.Struct, frozen=True, kw_only=True):
    """Holder of a cluster's lease; ``fence`` grows with every holder."""

    fence: int
    holder: str


class Fence(msgspec.Struct, frozen=True, kw_only=True):
    """The last fence that a holder had, and when it began to look; ``settled``: when the last holder did that settles
    what it sees. ``lost_since``: what was written from then on is gone, as after a restore, and is yet to be counted.
    """

    fence: int
    at: datetime | None = None
    settled: datetime | None = None
    lost_since: datetime | None = None


LEASE_S = 60.0
"""A dead holder's lease ends after so long."""

LEASE = Table("lease", Format(LeaseHolder), LEASE_S)
"""``<cluster>``: who works on it."""

FENCE = Table("fence", Format(Fence, 2))
"""``<cluster>``."""
