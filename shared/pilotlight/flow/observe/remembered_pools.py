"""Pools with what their cloud does not tell: what a part that cannot be read had, and since when pools tell nothing.

A part that does not answer costs its pool alone, and at once: nothing is bought there or given back. Pods for which
that pool is the cheapest wait a few minutes for it, so that no blip sends them to a dearer one.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.errors import Unavailable
from pilotlight.facts.capacity import Node
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import Booting, InFlight, PoolState
from pilotlight.units import count_of

WAITS = timedelta(minutes=5)
"""Pods wait so long for a pool of which a part does not answer."""


def as_remembered(
    pool: PoolState, entries: Sequence[InFlight], nodes: Sequence[Node], memory: Memory, now: datetime, late: datetime
) -> PoolState:
    """A pool of a look at ``now``; what was asked for before ``late`` is overdue, but in a queue."""
    queues = pool.rules is not None and pool.rules.queues
    fresh = [e for e in entries if e.pool == pool.name and (queues or e.requested_at >= late)]
    pool = _unread(pool, fresh, nodes, memory.sizes) if pool.unread else pool
    return _silent(_owing(_aged(pool, memory.unmade, late), fresh), memory.silent, now)


def remember(memory: Memory, pools: Sequence[PoolState], now: datetime) -> Memory:
    """Remember since when instances are only names, and pools lag behind their sizes or do not answer."""
    unmade = {b.instance: b.requested_at for pool in pools for b in pool.booting if b.unmade and not b.doubt}
    unmade |= {at: memory.unmade.get(at, now) for pool in pools if pool.lagging for at in [f"{pool.name}/"]}
    silent = {p.name: memory.silent.get(p.name, now) for p in pools if p.rules is not None and p.rules.silent}
    if (unmade, silent) == (memory.unmade, memory.silent):
        return memory
    return replace(memory, unmade=unmade, silent=silent)


def see_that_it_answers(pools: Sequence[PoolState], name: str) -> Sequence[PoolState]:
    """These pools. Raises ``Unavailable`` where the one of this name does not answer: in minutes it may."""
    silent = next((p.rules for p in pools if p.name == name and p.rules is not None and p.rules.silent), None)
    if silent is not None:
        raise Unavailable(silent.closed)
    return pools


def _unread(pool: PoolState, entries: Sequence[InFlight], nodes: Sequence[Node], sizes: Mapping[str, int]) -> PoolState:
    """The pool as large as it may be, of which a part could not be read: with its nodes and what boots there; and what
    else a part that is hidden had, or made anew since, which counts and is no room."""
    known = sum(node.pool == pool.name for node in nodes) + sum(e.count for e in entries)
    known = max(pool.desired, known)
    more = max(0, sizes.get(pool.name, 0) - known) if pool.hidden else 0
    return replace(pool, desired=known + more, owed=pool.owed + more)


def _silent(pool: PoolState, since: Mapping[str, datetime], now: datetime) -> PoolState:
    """The pool that may answer again in a moment: its pods wait for it, and of one that is not seen whole nothing goes
    back meanwhile."""
    rules = pool.rules
    until = since.get(pool.name, now) + WAITS
    if rules is None or not rules.silent or now >= until:
        return pool
    closed = f"{rules.closed}; what waits for it goes elsewhere from {until:%H:%M} UTC on"
    return replace(pool, rules=replace(rules, closed=closed, starves=False, gives=() if pool.unread else rules.gives))


def _owing(pool: PoolState, entries: Sequence[InFlight]) -> PoolState:
    """The pool without what was asked for since its cloud last said no, and is not overdue: that may be launched yet.

    A refusal from before a request was seen, and heard, by the look that decided it: its pool was not asked then.
    """
    since = pool.refusal.at if pool.refusal else None
    if not pool.owed or since is None:
        return pool
    fresh = sum(e.count for e in entries if e.requested_at > since)
    return replace(pool, owed=max(0, pool.owed - fresh)) if fresh else pool


def _aged(pool: PoolState, since: Mapping[str, datetime], late: datetime) -> PoolState:
    """The pool whose instances that are only names are as old as they have been seen so, and which is owed what it has
    not even listed since before ``late``. Another hand's are not ours to give up."""
    if pool.lagging and since.get(f"{pool.name}/", late) < late:
        pool = _lagging(pool)
    if not any(b.unmade for b in pool.booting):
        return pool
    return replace(pool, booting=tuple(_seen_first(b, since) if b.unmade else b for b in pool.booting))


def _lagging(pool: PoolState) -> PoolState:
    rules = pool.rules
    if rules is not None and not rules.closed:
        why = f"its cloud does not list {count_of(pool.lagging, 'node')} of size {pool.desired}, and made none in time"
        way_out = f"lower the size of {rules.group} to {pool.desired - pool.lagging}"
        gives = (*(one.instance for one in pool.booting), *pool.refused)
        rules = replace(rules, closed=f"{why}: {way_out}", starves=True, gives=gives)
    return replace(pool, owed=pool.owed + pool.lagging, rules=rules)


def _seen_first(one: Booting, since: Mapping[str, datetime]) -> Booting:
    return one if one.doubt else replace(one, requested_at=since.get(one.instance, one.requested_at))
