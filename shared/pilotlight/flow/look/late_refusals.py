"""Launches that a cloud took on and that failed, as its pools tell them: each is heard once, as its event would be."""

from collections.abc import Sequence
from datetime import datetime

from pilotlight.codec.records import Mark
from pilotlight.facts.capacity import PoolState
from pilotlight.facts.memory import Memory
from pilotlight.flow.deps import Deps
from pilotlight.flow.memory.memory_updates import refused_late
from pilotlight.state_schema.marks import EVENT


def heard(deps: Deps, memory: Memory, pools: Sequence[PoolState], now: datetime) -> Memory:
    """The memory with what could not be launched, and is not too old to still hold."""
    for pool in pools:
        late = pool.refusal
        if late is None or (late.at and (now - late.at).total_seconds() > deps.policy.max_event_age):
            continue
        claim = f"{deps.name}/{late.identity}"
        if EVENT.get(deps.state, claim) is None:
            memory = refused_late(memory, deps.offerings, pool.name, late.zone, late.reason, late.message, now)
            EVENT.put(deps.state, claim, Mark(note=pool.name))
    return memory
