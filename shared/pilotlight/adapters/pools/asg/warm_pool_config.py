"""Configuration of a group's warm pool, by AWS's own names."""

from typing import Literal

import msgspec


class _Reuse(msgspec.Struct, frozen=True):
    ReuseOnScaleIn: bool = False


class WarmConfig(msgspec.Struct, frozen=True):
    """Its rules. AWS keeps max(``MaxGroupPreparedCapacity`` less the desired capacity, ``MinSize``) instances in it.

    ``MaxGroupPreparedCapacity`` is None, or -1, where the group's max size stands for it.
    """

    MaxGroupPreparedCapacity: int | None = None
    MinSize: int = 0
    PoolState: Literal["Stopped", "Running", "Hibernated"] = "Stopped"
    Status: str = ""
    InstanceReusePolicy: _Reuse = _Reuse()

    @property
    def takes_back(self) -> bool:
        """True where a node that the group scales in comes to stand by, and AWS fills it up to a number that was
        set."""
        most = self.MaxGroupPreparedCapacity
        reuses = self.InstanceReusePolicy.ReuseOnScaleIn and self.PoolState == "Stopped"
        return reuses and most is not None and most >= 0 and not self.Status
