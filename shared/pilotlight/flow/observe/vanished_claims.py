"""Nodes asked for by name that went before they joined, not by us: each is a refusal of its offering.

Karpenter deletes a claim at once where its provider has no machine or its node class is not ready, after 5 minutes
without a launch, and after 15 without a node: its deadlines come before ours. It says why in an Event, which may be
forbidden, expire, or come late: the refusal waits for none, and one that comes later only mends its reason.
A queue deletes nothing: another hand did, once, or as a rule. So the first request that is gone is asked for again.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import AskedNode, LateRefusal, PoolState
from pilotlight.facts.workload import Finding
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import ledger
from pilotlight.flow.records.memory_updates import never_ready, note_late_refusal, note_not_made, tries_of
from pilotlight.state_schema.marks import EVENT, Mark

IN_VAIN = timedelta(minutes=14)
"""Karpenter ends a machine that is no node after 15 minutes, of which its launch may have taken some seconds."""
UNSAID = "{}: Karpenter deleted it before its node joined"
DELETED = "{}: another hand deleted it before its nodes came; see who cleans up in its namespace"


def with_vanished(deps: Deps, snapshot: Snapshot) -> Snapshot:
    """The look that has heard what is gone so, and remembers what is asked for and is no node yet."""
    was, memory, findings = snapshot.memory.asked, snapshot.memory, snapshot.findings
    waits = {pool: known for pool, known in was.items() if pool in deps.policy.pools}
    for pool in (one for one in snapshot.pools if not one.unread):
        there = {one.name for one in pool.asked}
        gone = [one for one in was.get(pool.name, ()) if one.name not in there]
        if gone:
            memory, told = _heard(deps, memory, pool, gone, snapshot.now)
            findings += told
        waits[pool.name] = _waits(pool, snapshot.leaving)
    memory = replace(memory, asked={pool: known for pool, known in waits.items() if known})
    if (memory.asked, memory.backoffs) == (was, snapshot.memory.backoffs):
        return snapshot
    lasting = replace(snapshot.was.memory, asked=memory.asked, backoffs=memory.backoffs)
    was_ = ledger.remember(deps.state, deps.name, snapshot.was, lasting)
    return replace(snapshot, memory=memory, was=was_, findings=findings)


def _waits(pool: PoolState, leaving: Iterable[str]) -> tuple[AskedNode, ...]:
    """Nodes asked for that have not joined, and that we do not give back."""
    names = tuple(leaving)
    return tuple(replace(one, waits=None) for one in pool.asked if not (one.joined or any(map(one.is_called, names))))


def _heard(
    deps: Deps, memory: Memory, pool: PoolState, gone: Sequence[AskedNode], now: datetime
) -> tuple[Memory, tuple[Finding, ...]]:
    """The memory after some of a pool's went, and what people are told of it."""
    if pool.rules is not None and pool.rules.queues:
        return _deleted(deps, memory, pool.name, gone[-1].name, now)
    return _refused(deps, memory, pool, gone, now), ()


def _refused(deps: Deps, memory: Memory, pool: PoolState, gone: Sequence[AskedNode], now: datetime) -> Memory:
    """The memory with one refusal for each zone, in its cloud's words where it said some.

    What was paid for until Karpenter's deadline never became ready: its offering rests for long.
    """
    told = {late.identity.partition("/")[0]: late for late in pool.ended}
    zones: dict[str, LateRefusal] = {}
    for one in gone:
        unsaid = LateRefusal(identity=gone_mark(one.name), reason="other", message=UNSAID.format(one.name))
        late = told.get(one.name, unsaid)
        zones[one.zone] = late if one.name in told else zones.get(one.zone, late)
        for heard in dict.fromkeys((gone_mark(one.name), late.identity)):
            EVENT.put(deps.state, f"{deps.name}/{heard}", Mark(note=one.zone))
    for zone, late in zones.items():
        made = [one.made_at for one in gone if one.zone == zone and one.made_at is not None]
        if made and now - min(made) >= IN_VAIN:
            sold = (o for o in deps.offerings if o.pool == pool.name and zone in ("", o.zone or zone))
            for offering in sold:
                why = f"{late.message}; it was launched at {min(made):%H:%M} UTC, and paid for"
                memory = never_ready(memory, offering.name, why, now)
        else:
            memory = note_late_refusal(memory, deps.offerings, pool.name, zone, late.reason, late.message, now)
    return memory


def _deleted(deps: Deps, memory: Memory, pool: str, name: str, now: datetime) -> tuple[Memory, tuple[Finding, ...]]:
    """The memory after a queue's request went, and what people are told from the second in a row."""
    sold = [offering.name for offering in deps.offerings if offering.pool == pool]
    for offering in sold:
        memory = note_not_made(memory, offering, DELETED.format(name), now)
    if max((tries_of(memory, offering) for offering in sold), default=0) < 2:
        return memory, ()
    return memory, (Finding(subject=f"pool {pool}", code="request-deleted", message=DELETED.format(name)),)


def gone_mark(name: str) -> str:
    """Mark of a claim whose end was heard; its note is the zone."""
    return f"{name}/gone"
