"""Nodes that are too old, or made by a launch template that has changed: replaced one of a pool at a time.

What a pool keeps lit is bought again at the next look, new. A node that works is left to its work, but where all of its
pods may be moved.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pilotlight.decide.limits.policy_schedule import in_window
from pilotlight.decide.money.economics import billed_cost
from pilotlight.facts.capacity import BoundPod, Node, Offering
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.units import human

if TYPE_CHECKING:
    from pilotlight.decide.work import Work

DRIFTED = "its pool's launch template has changed since it was made"


def renew_aged_nodes(
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
            cost = billed_cost(offerings[name], (now - oldest.created_at).total_seconds())
            n = verdicts[oldest.name]
            out[n] = replace(out[n], verdict="release", why=f"idle, and {old[oldest.name]}", spent_usd=cost)
    return out, min((at for at in due if at > now), default=None)


def renew(work: "Work") -> None:
    """Replace nodes that are too old, one of a pool at a time."""
    nodes = [node for node in work.standing if node.name not in work.look.leaving]
    pools, policy, memory = work.look.pools, work.policy, work.memory
    work.nodes, at = renew_aged_nodes(work.nodes, nodes, pools, work.by_pool, policy, memory, work.reserved, work.now)
    work.wake_at(at)


def movable(nodes: Sequence[Node], pools: Iterable[PoolState], policy: Policy, now: datetime) -> list[tuple[Node, str]]:
    """Of each pool the oldest node that works, is too old, and whose pods may all be moved; and why it is replaced.

    None while an old one idles (``renewed`` has it), another is on its way, or no window is open. A reserved pool has
    no second node to move to.
    """
    states = {state.name: state for state in pools}
    found = []
    for name, pool in policy.pools.items():
        here = [node for node in nodes if node.pool == name]
        asked = pool.max_age is not None or pool.drift == "replace"
        if not asked or pool.capacity_type == "reserved" or not here or not _open(policy, name, now):
            continue
        old, _ = _old(here, pool, states.get(name), now)
        aged = sorted((node for node in here if node.name in old), key=lambda node: (node.created_at, node.name))
        if _moves(here, states.get(name)) or any(not node.gpu_pods for node in aged):
            continue
        free = (
            n
            for n in aged
            if n.schedulable and not n.marked and all(moves_on(p, _consent(p, policy)) for p in n.gpu_pods)
        )
        found += [(node, old[node.name]) for node in islice(free, 1)]
    return found


def _consent(pod: BoundPod, policy: Policy) -> str:
    return policy.of_class(pod.workload_class or "batch").at_max_age  # type: ignore[arg-type]


def moves_on(pod: BoundPod, says: str) -> bool:
    """True for a pod whose class moves, and that loses nothing: it saves when asked, or serves; no gang's."""
    serves = pod.workload_class == "serving"
    return says == "move" and not pod.gang and not pod.blocks and (pod.checkpoint_takes_s > 0 or serves)


def room_for(pod: BoundPod, leaving: str, nodes: Iterable[Node]) -> bool:
    """True where a ready node beside the one that goes has free GPUs for a pod."""
    wants = pod.gpu
    others = (n for n in nodes if n.name != leaving and n.ready and n.schedulable and not n.marked)
    return wants is None or any(
        n.slices.get(wants.resource, 0) >= wants.count
        if n.resource != wants.resource
        else sum(device >= wants.milli for device in n.devices) >= wants.count
        for n in others
    )


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
    """True where the policy's windows let nodes of a pool be replaced now: any time, where none names it."""
    windows = [schedule for schedule in policy.schedules if pool in schedule.renew]
    return not windows or any(in_window(schedule, now) for schedule in windows)


def _moves(nodes: Sequence[Node], state: PoolState | None) -> bool:
    """True where another node of the pool is on its way."""
    return any(not node.ready for node in nodes) or (state is not None and state.desired > len(nodes))


def _idle(node: Node, memory: Memory, now: datetime) -> bool:
    rests = memory.rests.get(node.name)
    return node.ready and not node.gpu_pods and (rests is None or rests <= now)


def _floored(pool: str, lit: int, memory: Memory, now: datetime) -> bool:
    """True where the cloud keeps the pool's last node."""
    floor = memory.floors.get(pool)
    return floor is not None and floor > now and lit <= 1
