"""Pools beside what is remembered of nodes that were asked for by name: deadlines go by the store's time alone.

A claim's own stamps are of its API server's clock, and a worker's clock is one more: neither calls off what boots.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import AskedNode, Booting, PoolState
from pilotlight.units import EPOCH

LAUNCHED_WITHIN = timedelta(minutes=5)
"""Karpenter itself deletes a claim that is not launched by then."""


def with_asked(pools: Iterable[PoolState], memory: Memory, now: datetime) -> tuple[PoolState, ...]:
    """The pools with when their nodes were asked for: what was not launched in time is refused, by its name."""
    return tuple(_with_asked(pool, memory.asked.get(pool.name, ()), now) if pool.asked else pool for pool in pools)


def _with_asked(pool: PoolState, known: Iterable[AskedNode], now: datetime) -> PoolState:
    """A pool none of whose nodes was begun before it was asked for, whatever its cloud's clock says."""
    at = {one.name: one.asked_at or now for one in known}
    asked = tuple(_asked(one, at.get(one.name, now)) for one in pool.asked)
    begun = {one.instance: one.asked_at or now for one in asked}
    late = [one for one in asked if one.waits is not None and now - at.get(one.name, now) > LAUNCHED_WITHIN]
    return replace(
        pool,
        asked=asked,
        booting=tuple(_boots(b, begun.get(b.instance, EPOCH)) for b in pool.booting),
        refused=(*pool.refused, *(one.name for one in late)),
        refusal=late[0].waits if late else pool.refusal,
    )


def _boots(one: Booting, begun: datetime) -> Booting:
    """One that was first seen long after its launch has all its time to join, and costs since then."""
    return one if one.requested_at >= begun else replace(one, requested_at=begun, billed_from=one.requested_at)


def _asked(one: AskedNode, at: datetime) -> AskedNode:
    return replace(one, asked_at=at, made_at=max(one.made_at, at) if one.made_at is not None else None)
