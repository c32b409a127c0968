"""Words on pools whose cloud owes them nodes, or does not show them whole."""

from collections.abc import Sequence
from typing import TypeGuard

from pilotlight.facts.nodes.pool_state import PoolRules, PoolState
from pilotlight.facts.workload import LAUNCH_OWED, Finding
from pilotlight.units import count_of


def owed_launches(pools: Sequence[PoolState]) -> tuple[Finding, ...]:
    """A finding for each pool whose cloud owes it nodes."""
    return tuple(
        Finding(subject=f"pool {pool.name}", code=LAUNCH_OWED, message=_owed(pool))
        for pool in pools
        if pool.owed and not pool.unread
    )


def unread_pools(pools: Sequence[PoolState]) -> tuple[Finding, ...]:
    """A finding for each pool of which a part could not be read."""
    return tuple(
        Finding(subject=f"pool {pool.name}", code="pool-unread", message=pool.unread) for pool in pools if pool.unread
    )


def _owed(pool: PoolState) -> str:
    late, rules = pool.refusal, pool.rules
    since = f" since {late.at:%H:%M}" if late and late.at else ""
    off = f"; to call it off, lower the size of {rules.group} to {pool.desired - pool.owed}" if _spares(rules) else ""
    return (
        f"{pool.owed} of {count_of(pool.desired, 'node')} could not be launched{since} ({late.message if late else ''}"
        "); what waits goes elsewhere, the cloud may still launch them, and what comes late is used, or goes when "
        f"idle{off}"
    )


def _spares(rules: PoolRules | None) -> TypeGuard[PoolRules]:
    """True where a lower size ends none of the pool's new nodes."""
    return rules is not None and rules.protects
