"""Words on pools whose cloud owes them nodes, does not show them whole, or cannot end a machine."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeGuard

from pilotlight.facts.nodes.pool_state import PoolRules, PoolState
from pilotlight.facts.workload import LAUNCH_OWED, Finding
from pilotlight.units import count_of

STUCK_AFTER = timedelta(minutes=15)
STUCK = (
    "Karpenter deletes the claim of {} since {:%H:%M} UTC, and its machine goes on billing: see Karpenter's log, or "
    "end it at its cloud"
)


def pool_findings(pools: Sequence[PoolState], now: datetime) -> tuple[Finding, ...]:
    """Every finding of the module, of pools as one look shows them."""
    return _owed_launches(pools) + _unread_pools(pools) + _unread_paid(pools) + _stuck_ends(pools, now)


def _owed_launches(pools: Sequence[PoolState]) -> tuple[Finding, ...]:
    """A finding for each pool whose cloud owes it nodes."""
    return tuple(
        Finding(subject=f"pool {pool.name}", code=LAUNCH_OWED, message=_owed(pool))
        for pool in pools
        if pool.owed and not pool.unread
    )


def _unread_pools(pools: Sequence[PoolState]) -> tuple[Finding, ...]:
    """A finding for each pool of which a part could not be read; none while its pods wait for it to answer."""
    return tuple(
        Finding(subject=f"pool {pool.name}", code="pool-unread", message=pool.unread)
        for pool in pools
        if pool.unread and not (pool.rules and pool.rules.silent and not pool.rules.starves)
    )


def _unread_paid(pools: Sequence[PoolState]) -> tuple[Finding, ...]:
    """A finding for each pool of which nobody may read what is paid for."""
    return tuple(
        Finding(subject=f"pool {pool.name}", code="pool-unread", message=pool.paid_unread)
        for pool in pools
        if pool.paid_unread
    )


def _stuck_ends(pools: Sequence[PoolState], now: datetime) -> tuple[Finding, ...]:
    """A finding for each machine that is being ended for so long that something holds it."""
    return tuple(
        Finding(subject=f"pool {pool.name}", code="end-stuck", message=STUCK.format(one.instance, one.going))
        for pool in pools
        for one in pool.booting
        if one.going is not None and now - one.going > STUCK_AFTER
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
