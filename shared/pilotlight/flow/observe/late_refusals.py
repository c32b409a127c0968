"""Launches that a cloud took on and that failed, as its pools tell them: each is heard once, as its event would be.

What a pool's cloud still owes it may launch at any time: it is told while it is owed, and no pod waits for it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeGuard

from pilotlight.errors import NoCapacity
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import InFlight, PoolRules, PoolState
from pilotlight.facts.workload import LAUNCH_OWED, Finding
from pilotlight.flow.deps import Deps
from pilotlight.flow.records.memory_updates import note_late_refusal, note_refusal
from pilotlight.state_schema.marks import EVENT
from pilotlight.state_schema.table import Mark


def hear_refusals(deps: Deps, memory: Memory, pools: Sequence[PoolState], now: datetime) -> Memory:
    """The memory with what could not be launched, and is not too old to still hold."""
    for pool in pools:
        late = pool.refusal
        if late is None or (late.at and (now - late.at).total_seconds() > deps.policy.max_event_age):
            continue
        claim = f"{deps.name}/{late.identity}"
        if EVENT.get(deps.state, claim) is None:
            memory = note_late_refusal(memory, deps.offerings, pool.name, late.zone, late.reason, late.message, now)
            EVENT.put(deps.state, claim, Mark(note=pool.name))
    return memory


def waited_in_vain(
    memory: Memory, entry: InFlight, pools: Sequence[PoolState], now: datetime, late: datetime
) -> Memory:
    """The memory after an entry that was asked for before ``late``: where its cloud still owes the pool, and tried
    nothing since, it rests."""
    owes = entry.requested_at < late and any(pool.owed for pool in pools if pool.name == entry.pool)
    return (
        note_refusal(memory, entry.offering, NoCapacity("nothing of it was launched by its deadline"), now)
        if owes
        else memory
    )


def owed_launches(pools: Sequence[PoolState]) -> tuple[Finding, ...]:
    """A finding for each pool whose cloud owes it nodes."""
    return tuple(
        Finding(subject=f"pool {pool.name}", code=LAUNCH_OWED, message=_owed(pool)) for pool in pools if pool.owed
    )


def _owed(pool: PoolState) -> str:
    late, rules = pool.refusal, pool.rules
    since = f" since {late.at:%H:%M}" if late and late.at else ""
    off = f"; to call it off, lower the size of {rules.group} to {pool.desired - pool.owed}" if _spares(rules) else ""
    return (
        f"{pool.owed} of {pool.desired} nodes could not be launched{since} ({late.message if late else ''}); what "
        f"waits goes elsewhere, the cloud may still launch them, and what comes late is used, or goes when idle{off}"
    )


def _spares(rules: PoolRules | None) -> TypeGuard[PoolRules]:
    """True where a lower size ends none of the pool's new nodes."""
    return rules is not None and rules.protects
