"""Use of the GPUs of pools lately."""

from datetime import datetime

import msgspec


class PoolUse(msgspec.Struct, frozen=True, kw_only=True):
    """Mean activity (0 to 1) of all GPUs of a pool's ready nodes, by pool: one that was not measured whole is missing.

    ``metric`` says what activity is.
    """

    at: datetime
    metric: str = ""
    pools: dict[str, float] = {}
