"""Nodes that are too old, or made by a launch template that has changed: replaced while idle, one of a pool at a time.

What a pool keeps lit is bought again at the next look, new. A node that works is left to its work.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.decide.capacity.schedule import in_window
from pilotlight.decide.money.economics import billed
from pilotlight.facts.capacity import Node, Offering, PoolState
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.units import human

DRIFTED = "its pool's launch template has changed since it was made"


def renewed(
    made: Sequence[NodeVerdict],
    nodes: Iterable[Node],
    pools: Iterable[PoolState],
    offerings: Mapping[str, Offering],
    policy: Policy,
    memory: Memory,
    reserved: Collection[str],
    now: datetime,
) -> tuple[list[NodeVerdict], datetime | None]:
    """The verdicts with at most one release more of each pool, and when the next idle node comes of age.

    Nothing goes beside another of its pool that goes, is asked for or boots, nor outside of the windows that name the
    pool; ``reserved`` nodes take pods that wait. A node that is too old is given back, not stopped to stand by.
    """
    states = {state.name: state for state in pools}
    here: dict[str, list[Node]] = {}
    for node in nodes:
        here.setdefault(node.pool, []).append(node)
    out, due = list(made), []
    for name, pool in policy.pools.items():
        if (pool.max_age is None and pool.drift == "keep") or name not in here or name not in offerings:
            continue
        old, ages = _old(here[name], pool, states.get(name), now)
        due += ages
        if not old or not _open(policy, name, now):
            continue
        verdicts = {v.node: n for n, v in enumerate(out) if v.pool == name}
        out = [replace(v, stop=False) if v.stop and v.node in old else v for v in out]
        if _moves(here[name], states.get(name)) or any(out[n].verdict == "release" for n in verdicts.values()):
            continue
        fit = [node for node in here[name] if node.name in old and node.name in verdicts and _idle(node, memory, now)]
        fit = [node for node in fit if node.name not in reserved and not out[verdicts[node.name]].blockers]
        if fit and not _floored(name, len(here[name]), memory, now):
            oldest = min(fit, key=lambda node: (node.created_at, node.name))
            cost = billed(offerings[name], (now - oldest.created_at).total_seconds())
            n = verdicts[oldest.name]
            out[n] = replace(out[n], verdict="release", why=f"idle, and {old[oldest.name]}", spent_usd=cost)
    return out, min((at for at in due if at > now), default=None)


def _old(
    nodes: Iterable[Node], pool: PoolPolicy, state: PoolState | None, now: datetime
) -> tuple[dict[str, str], list[datetime]]:
    """Why nodes should be replaced, by name; and when those that are not too old will be."""
    why: dict[str, str] = {}
    ages: list[datetime] = []
    drifted = frozenset(state.drifted) if state is not None and pool.drift == "replace" else frozenset()
    for node in nodes:
        if node.instance in drifted:
            why[node.name] = DRIFTED
        if pool.max_age is not None:
            ends = node.created_at + timedelta(seconds=pool.max_age)
            if ends <= now:
                age = human((now - node.created_at).total_seconds())
                why[node.name] = f"{age} old, over pools.{node.pool}.max_age {human(pool.max_age)}"
            else:
                ages.append(ends)
    return why, ages


def _open(policy: Policy, pool: str, now: datetime) -> bool:
    """Whether the policy's windows let nodes of a pool be replaced now: any time, where none names it."""
    windows = [schedule for schedule in policy.schedules if pool in schedule.renew]
    return not windows or any(in_window(schedule, now) for schedule in windows)


def _moves(nodes: Sequence[Node], state: PoolState | None) -> bool:
    """Whether another node of the pool is on its way."""
    return any(not node.ready for node in nodes) or (state is not None and state.desired > len(nodes))


def _idle(node: Node, memory: Memory, now: datetime) -> bool:
    rests = memory.rests.get(node.name)
    return node.ready and not node.gpu_pods and (rests is None or rests <= now)


def _floored(pool: str, lit: int, memory: Memory, now: datetime) -> bool:
    """Whether the cloud keeps the pool's last node."""
    floor = memory.floors.get(pool)
    return floor is not None and floor > now and lit <= 1
