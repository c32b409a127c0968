"""Brakes that people set: a pause, limits of ten minutes, and purchases so large that a person must approve them.

Keys: ``pause/<cluster>/<pool or *>``, ``approved/<cluster>/<pool>``.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from pilotlight.codec.records import Format
from pilotlight.facts.decisions import Buy, NodeVerdict
from pilotlight.facts.memory import Memory, Turn
from pilotlight.facts.policy import Limits
from pilotlight.flow.deps import Deps
from pilotlight.flow.sight import Sight
from pilotlight.ports import State
from pilotlight.units import Seconds, UsdPerHour, cents

WINDOW = timedelta(minutes=10)
APPROVAL_S: Seconds = 3600.0
"""An approval that is not used is forgotten after so long."""

ALL = "*"


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Why and since when every effect of a pool, or of all, is stopped."""

    reason: str
    at: datetime


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a pool that a person allowed beyond ``approve_over``."""

    nodes: int
    decision: str


PAUSE, APPROVAL = Format(Pause), Format(Approval)


def pause(state: State, cluster: str, pool: str, reason: str, now: datetime) -> None:
    """Stop every effect from the next call on."""
    state.put(f"pause/{cluster}/{pool or ALL}", PAUSE.write(Pause(reason=reason, at=now)))


def resume(state: State, cluster: str, pool: str) -> bool:
    """Take a pause back; whether there was one."""
    key = f"pause/{cluster}/{pool or ALL}"
    there = state.get(key) is not None
    state.delete(key)
    return there


def paused(state: State, cluster: str, pool: str) -> str:
    """Why the effects of a pool are stopped, or nothing. Read before each one."""
    for name in (ALL, pool):
        key = f"pause/{cluster}/{name}"
        stored = state.get(key)
        if stored is not None:
            found = PAUSE.read(key, stored.value)
            return f"paused since {found.at:%Y-%m-%d %H:%M} UTC: {found.reason}"
    return ""


def approve(state: State, cluster: str, pool: str, nodes: int, decision: str) -> None:
    """Allow so many nodes of a pool beyond ``approve_over``, once."""
    value = APPROVAL.write(Approval(nodes=nodes, decision=decision))
    state.put(f"approved/{cluster}/{pool}", value, ttl_s=APPROVAL_S)


def use_approval(state: State, cluster: str, pool: str) -> None:
    """An approved purchase was made: the next one asks again."""
    state.delete(f"approved/{cluster}/{pool}")


class Brakes:
    """What the brakes say to the calls of one plan, in their order: each allowed call counts against the next."""

    def __init__(self, deps: Deps, sight: Sight, lit_nodes: int, usd_per_hour: UsdPerHour) -> None:
        self._deps = deps
        self._now = sight.now
        self._turns = recent(sight.memory.turns, sight.now)
        self._nodes, self._usd_per_hour = lit_nodes, usd_per_hour

    def allow(self, call: Buy | NodeVerdict) -> tuple[int, str]:
        """How many nodes of a call may be added or removed now, and why not all, in figures. A gang is not cut."""
        wanted = call.count if isinstance(call, Buy) else 1
        why = paused(self._deps.state, self._deps.name, call.pool)
        if why:
            return 0, why
        room, why = self._added(call) if isinstance(call, Buy) else self._removed(call)
        allowed = max(0, min(wanted, room))
        if isinstance(call, Buy) and allowed:
            held = self._approval(call, allowed)
            if held or (call.gangs and allowed < wanted):
                return 0, held or why
        self._count(call, allowed)
        return allowed, why if allowed < wanted else ""

    def _count(self, call: Buy | NodeVerdict, nodes: int) -> None:
        if nodes:
            self._turns = (*self._turns, turn_of(call, nodes, self._now))
        if isinstance(call, Buy):
            self._nodes += nodes
            self._usd_per_hour += nodes * call.usd_per_hour

    def _removed(self, node: NodeVerdict) -> tuple[int, str]:
        most = self._deps.policy.limits.nodes_removed
        if most is None or node.failed:
            return 1, ""
        removed = sum(t.removed for t in self._turns)
        return most - removed, f"{removed + 1} of {most} nodes would be removed in 10 minutes"

    def _added(self, buy: Buy) -> tuple[int, str]:
        limits: Limits = self._deps.policy.limits
        room: list[tuple[int, str]] = [(buy.count, "")]
        if limits.nodes_added is not None:
            added = sum(t.added for t in self._turns)
            figures = f"{added + buy.count} of {limits.nodes_added} nodes would be added in 10 minutes"
            room.append((limits.nodes_added - added, figures))
        if limits.usd_per_hour_added is not None:
            usd = sum((t.usd_per_hour for t in self._turns), Decimal(0))
            after, most = cents(usd + buy.count * buy.usd_per_hour), cents(limits.usd_per_hour_added)
            figures = f"{after} of {most} an hour would be added in 10 minutes"
            room.append((int((limits.usd_per_hour_added - usd) // buy.usd_per_hour), figures))
        return min(room)

    def _approval(self, buy: Buy, count: int) -> str:
        over = self._deps.policy.approve_over
        nodes, usd = self._nodes + count, self._usd_per_hour + count * buy.usd_per_hour
        if over.nodes is not None and nodes > over.nodes:
            figures = f"{nodes} nodes would be lit, over {over.nodes}"
        elif over.usd_per_hour is not None and usd > over.usd_per_hour:
            figures = f"{cents(usd)} an hour would be spent, over {cents(over.usd_per_hour)}"
        else:
            return ""
        key = f"approved/{self._deps.name}/{buy.pool}"
        stored = self._deps.state.get(key)
        if stored is not None and APPROVAL.read(key, stored.value).nodes >= count:
            return ""
        return f"{figures}: it waits for approval"


def recent(turns: Sequence[Turn], now: datetime) -> tuple[Turn, ...]:
    """The turns of the last ten minutes."""
    return tuple(t for t in turns if now - t.at < WINDOW)


def turn_of(call: Buy | NodeVerdict, nodes: int, at: datetime) -> Turn:
    """What a call of so many nodes adds to the turns."""
    if isinstance(call, Buy):
        return Turn(at=at, added=nodes, usd_per_hour=nodes * call.usd_per_hour)
    return Turn(at=at, removed=nodes)


def turned(memory: Memory, call: Buy | NodeVerdict, nodes: int, now: datetime, limits: Limits) -> Memory:
    """The memory after a call was made; nothing is kept where no limit is set."""
    if limits == Limits():
        return memory
    return msgspec.structs.replace(memory, turns=(*recent(memory.turns, now), turn_of(call, nodes, now)))
