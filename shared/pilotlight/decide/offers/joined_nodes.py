"""Resources of nodes that joined, by pool and type: the next one is predicted by them, also with the pool at zero."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from pilotlight.decide.work import Work
from pilotlight.facts import labels
from pilotlight.facts.capacity import Node, Offering, Resources
from pilotlight.facts.memory import Learnt, Memory
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import ATTACHABLE, is_gpu, part_of_gpu
from pilotlight.units import milli, whole

OF_ONE_NODE = ("hostname", "zone", "region", "topology.", "instance-id", "pilotlight.dev/")
"""Labels with these words in their key differ from node to node, or are ours."""
MOST = 64
"""So many pools and types are kept."""


def with_learnt(memory: Memory, nodes: Iterable[Node], policy: Policy) -> Memory:
    """The memory with what nodes show that are ready now; the very same where that is nothing new."""
    seen: dict[str, list[Node]] = {}
    for node in nodes:
        if node.room is not None and node.ready and node.pool in policy.pools:
            seen.setdefault(f"{node.pool}/{node.instance_type}", []).append(node)
    fresh = {key: _of(alike, memory.learnt.get(key)) for key, alike in seen.items()}
    if all(memory.learnt.get(key) == one for key, one in fresh.items()):
        return memory
    known = {key: one for key, one in memory.learnt.items() if key not in fresh} | fresh
    return replace(memory, learnt=dict(list(known.items())[-MOST:]))


def as_learnt(offerings: Sequence[Offering], memory: Memory, policy: Policy) -> list[Offering]:
    """The offerings with what is known of their nodes; what the policy says of labels and DaemonSets holds still."""
    return [_known(one, memory.learnt.get(f"{one.pool}/{one.instance_type}"), policy) for one in offerings]


def sell_as_joined(work: Work) -> None:
    """Sell each offering as nodes of it joined before."""
    work.offerings = as_learnt(work.offerings, work.memory, work.policy)


def of_other_types(nodes: Iterable[Node], offerings: Iterable[Offering]) -> tuple[Node, ...]:
    """Nodes of a type that no offering of their pool is."""
    types: dict[str, set[str]] = {}
    for one in offerings:
        types.setdefault(one.pool, {""}).add(one.instance_type)
    return tuple(node for node in nodes if node.instance_type not in types.get(node.pool, (node.instance_type,)))


def _of(nodes: Sequence[Node], old: Learnt | None) -> Learnt:
    rooms = [node.room for node in nodes if node.room is not None]
    attachable = [(n, a) for n, a in old.room.other if n.startswith(ATTACHABLE)] if old is not None else []
    room = _least(rooms, dict(attachable))
    labels_ = dict(sorted(_common_labels(nodes).items()))
    published = next((node for node in nodes if node.kinds), None)
    if published is not None:
        return Learnt(room=room, labels=labels_, kinds=published.kinds, resource=published.resource)
    kinds, resource = (old.kinds, old.resource) if old is not None else ((), "")
    return Learnt(room=room, labels=labels_, kinds=kinds, resource=resource)


def _least(rooms: Sequence[Resources], attachable: Mapping[str, int]) -> Resources:
    """The room that each of them has, and ``attachable`` volumes where they tell none."""
    others = [dict(room.other) for room in rooms]
    common = {name: min(each[name] for each in others) for name in others[0] if all(name in each for each in others)}
    return Resources(
        cpu_milli=min(r.cpu_milli for r in rooms),
        memory=min(r.memory for r in rooms),
        ephemeral=min(r.ephemeral for r in rooms),
        pods=min(r.pods for r in rooms),
        other=tuple(sorted({**attachable, **common}.items())),
    )


def _common_labels(nodes: Sequence[Node]) -> dict[str, str]:
    """Labels that all of them carry and that name none of them."""
    first, *rest = nodes
    return {
        key: value
        for key, value in first.labels.items()
        if key not in (labels.NODE_NAME, labels.GPU_MODEL, labels.INSTANCE_TYPE)
        and not any(word in key for word in OF_ONE_NODE)
        and not any(name and name in value for name in (first.name, first.instance))
        and all(node.labels.get(key) == value for node in rest)
    }


def _known(offering: Offering, learnt: Learnt | None, policy: Policy) -> Offering:
    if learnt is None:
        return offering
    pool = policy.pools.get(offering.pool)
    taken = pool.daemonsets if pool is not None else {}
    room = learnt.room
    resources = Resources(
        cpu_milli=max(0, room.cpu_milli - milli(taken.get("cpu", "0"))),
        memory=max(0, room.memory - whole(taken.get("memory", "0"))),
        ephemeral=max(0, room.ephemeral - whole(taken.get("ephemeral-storage", "0"))),
        pods=max(0, room.pods - whole(taken.get("pods", "0"))),
        other=tuple(sorted((dict(offering.resources.other) | _less(room.other, taken)).items())),
    )
    offering = replace(offering, resources=resources, labels={**learnt.labels, **offering.labels})
    return _published(offering, learnt) if learnt.kinds else offering


def _published(offering: Offering, learnt: Learnt) -> Offering:
    """The offering with the devices that drivers publish of its nodes: what no device plugin offers is had by claim."""
    alone = {kind.resource: kind.count for kind in learnt.kinds if not kind.plugin and is_gpu(kind.resource)}
    parts = {name: count for name, count in alone.items() if part_of_gpu(name)}
    whole = alone.get(learnt.resource)
    if not alone:
        return replace(offering, kinds=learnt.kinds)
    return replace(
        offering,
        kinds=learnt.kinds,
        resource=learnt.resource if whole else offering.resource,
        whole_gpus=whole if whole or parts else offering.whole_gpus,
        slices={**offering.slices, **parts} if whole is None else parts,
    )


def _less(have: Iterable[tuple[str, int]], taken: Mapping[str, str]) -> dict[str, int]:
    return {name: max(0, count - whole(taken.get(name, "0"))) for name, count in have}
