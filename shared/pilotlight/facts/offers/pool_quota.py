"""Quotas of an account that nodes of a pool count against."""

from collections.abc import Mapping

import msgspec


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """A quota that a node of a pool counts against, by its cloud's own name for it: pools may share one.

    ``limit`` and ``used`` are in ``unit``, and a node ``takes`` so many of them.
    """

    name: str
    limit: int
    used: int
    takes: int
    unit: str = "vCPUs"


NO_QUOTAS: Mapping[str, Quota] = {}
"""By pool: a cloud that tells none."""
