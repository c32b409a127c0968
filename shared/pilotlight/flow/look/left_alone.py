"""Pools that are another's now: nothing is bought, closed, moved or given back there."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pilotlight.decide.rivals import rivals
from pilotlight.facts.capacity import ClusterView, PoolState
from pilotlight.facts.policy import Policy

NONE: Mapping[str, str] = {}


def left_alone(policy: Policy, view: ClusterView, pools: Sequence[PoolState], now: datetime) -> Mapping[str, str]:
    """Why each pool that another scales, or that was handed back, is left alone."""
    if not (view.nodes or view.scalers or any(pool.rules and pool.rules.handed_back for pool in pools)):
        return NONE  # Nothing that another could have left.
    return rivals(policy, view, pools, now)
