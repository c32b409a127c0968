"""Nodes that are too old, or made by a launch template that has changed: replaced one of a pool at a time.

What a pool keeps lit is bought again at the next look, new. A node that works is left to its work, but where all of its
pods may be moved.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.interruption.drain_plan import moves_on
from pilotlight.decide.limits.policy_schedule import in_window
from pilotlight.decide.money.economics import billed_cost
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.units import human

DRIFTED = "its pool's launch template has changed since it was made"


class _Pool(NamedTuple):
    """A pool and its nodes: why those that may go now should be replaced, by name, and when the others will be."""

    name: str
    nodes: Sequence[Node]
    old: Mapping[str, str]
    ages: Sequence[datetime]
    moves: bool  # Another node of it is on its way.


def renew(work: Work) -> None:
    """Replace nodes that are too old, one of a pool at a time; wake when the next comes of age.

    Nothing goes beside another of its pool that goes, is asked for or boots, nor outside of the windows that the
    pool names; ``reserved`` nodes take pods that wait. A node that is too old is given back, not stopped to stand by.
    """
    nodes = [node for node in work.standing if node.name not in work.look.leaving]
    for pool in _pools(nodes, work.look.pools, work.policy, work.now):
        if pool.name in work.by_pool:
            work.wake_at(min(pool.ages, default=None))
            work.nodes = _renewed(work, pool) if pool.old else work.nodes


def _renewed(work: Work, pool: _Pool) -> list[NodeVerdict]:
    """The verdicts with at most one release more of a pool: that of its oldest idle node."""
    made = [replace(v, stop=False) if v.stop and v.node in pool.old else v for v in work.nodes]
    its = {v.node: v for v in made if v.pool == pool.name}
    if pool.moves or any(v.verdict == "release" for v in its.values()):
        return made
    fit = [n for n in pool.nodes if n.name in pool.old and _idle(n, its.get(n.name), work)]
    if not fit or _floored(pool, work.memory, work.now):
        return made
    oldest = min(fit, key=lambda node: (node.created_at, node.name))
    cost = billed_cost(work.by_pool[pool.name], (work.now - oldest.created_at).total_seconds())
    gone = replace(its[oldest.name], verdict="release", why=f"idle, and {pool.old[oldest.name]}", spent_usd=cost)
    return [gone if v is its[oldest.name] else v for v in made]


def movable(nodes: Sequence[Node], pools: Iterable[PoolState], policy: Policy, now: datetime) -> list[tuple[Node, str]]:
    """Of each pool the oldest node that works, is too old, and whose pods may all be moved; and why it is replaced.

    None while an old one idles (``renew`` has it), another is on its way, or no window is open. A reserved pool has
    no second node to move to.
    """
    found = []
    for pool in _pools(nodes, pools, policy, now):
        aged = sorted((node for node in pool.nodes if node.name in pool.old), key=lambda n: (n.created_at, n.name))
        stays = pool.moves or policy.pools[pool.name].capacity_type == "reserved"
        if stays or any(not node.gpu_pods for node in aged):
            continue
        free = (
            n
            for n in aged
            if n.schedulable and not n.marked and all(moves_on(p, policy, "max-age") for p in n.gpu_pods)
        )
        found += [(node, pool.old[node.name]) for node in islice(free, 1)]
    return found


def _pools(nodes: Iterable[Node], pools: Iterable[PoolState], policy: Policy, now: datetime) -> Iterator[_Pool]:
    """The policy's pools; of one none is too old while its windows are closed."""
    states = {state.name: state for state in pools}
    here: dict[str, list[Node]] = {}
    for node in nodes:
        here.setdefault(node.pool, []).append(node)
    for name, rules in policy.pools.items():
        its, state = here.get(name, []), states.get(name)
        old, ages = _old(its, rules, state, now)
        yield _Pool(name, its, old if _open(policy, name, now) else {}, ages, _moves(its, state))


def _old(
    nodes: Iterable[Node], pool: PoolPolicy, state: PoolState | None, now: datetime
) -> tuple[dict[str, str], list[datetime]]:
    """Why nodes should be replaced, by name; and when those that are not too old will be."""
    why: dict[str, str] = {}
    ages: list[datetime] = []
    drifted = frozenset(state.drifted) if state is not None and pool.renew.drifted else frozenset()
    for node in nodes:
        if node.instance in drifted:
            why[node.name] = DRIFTED
        if pool.renew.max_age is not None:
            ends = node.created_at + timedelta(seconds=pool.renew.max_age)
            if ends <= now:
                age = human((now - node.created_at).total_seconds())
                why[node.name] = f"{age} old, over pools.{node.pool}.renew.max_age {human(pool.renew.max_age)}"
            else:
                ages.append(ends)
    return why, ages


def _open(policy: Policy, pool: str, now: datetime) -> bool:
    """True where nodes of a pool may be replaced now: any time, where it names no rule."""
    during = policy.pools[pool].renew.during
    windows = [rule.when.time for rule in policy.rules if rule.name in during]
    return not during or any(in_window(window, now) for window in windows if window is not None)


def _moves(nodes: Sequence[Node], state: PoolState | None) -> bool:
    """True where another node of the pool is on its way."""
    return any(not node.ready for node in nodes) or (state is not None and state.size_beside(nodes) > len(nodes))


def _idle(node: Node, judged: NodeVerdict | None, work: Work) -> bool:
    """True for a node without work that no pod blocks, nobody waits for, and no person opened just now."""
    free = node.ready and not node.gpu_pods and judged is not None and not judged.blockers
    rests = work.memory.rests.get(node.name)
    return free and node.name not in work.reserved and (rests is None or rests <= work.now)


def _floored(pool: _Pool, memory: Memory, now: datetime) -> bool:
    """True where the cloud keeps the pool's last node."""
    floor = memory.floors.get(pool.name)
    return floor is not None and floor > now and len(pool.nodes) <= 1
