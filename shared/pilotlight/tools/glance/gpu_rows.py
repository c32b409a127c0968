"""GPUs of a cluster by pool, zone and capacity type: what is free on lit nodes, what could be bought, and the price."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from pilotlight.facts.capacity import CapacityType, Node, Offering
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import Policy
from pilotlight.units import MILLI_PER_GPU, UsdPerHour


class GpuRow(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of one pool in one zone. ``could_buy`` is up to the pool's ``max``, which its zones share.

    ``free`` are whole GPUs that a pod could have now; ``closed`` are free ones that no other pod gets: their node is
    not ready, cordoned, going, or kept for the pod it was bought for. ``parts`` are free slices and shares.
    """

    pool: str  # The policy's.
    gpu_model: str  # As the catalogue has it; empty where it is not known.
    instance_type: str  # The cloud's name of it.
    capacity_type: CapacityType  # On-demand, spot or reserved.
    zone: str  # Empty: any of the pool's.
    nodes: int = 0  # Lit.
    lit: int = 0  # GPUs of those.
    free: int = 0  # Whole GPUs that a pod could have now.
    closed: int = 0  # Free ones that no other pod gets.
    parts: dict[str, int] = {}  # Free slices and shares, by resource.
    booting: int = 0  # Nodes on their way, in the pool's first row: which zone they come to is not told before.
    boots_since: datetime | None = None  # When the oldest of those was asked for.
    could_buy: int = 0  # GPUs that the pool's max leaves room for.
    usd_per_gpu_hour: UsdPerHour | None = None  # None where no price is known.
    note: str = ""  # Why none can be bought now, or none is bought by itself.


Key = tuple[str, str, CapacityType, str]

NONE_STOPPED: Mapping[str, str] = {}


def gpu_rows(
    policy: Policy,
    offered: Iterable[Offering],
    clouds: Iterable[PoolState],
    nodes: Iterable[Node],
    memory: Memory,
    now: datetime,
    stopped: Mapping[str, str] = NONE_STOPPED,
) -> tuple[GpuRow, ...]:
    """A row for each offering, and for nodes that are of none, in the order of the policy's pools.

    ``stopped`` says of pools why nothing is bought there by itself: a pause, or their mode.
    """
    sold = {_key(each): each for each in offered}
    lit: dict[Key, list[Node]] = {}
    for node in nodes:
        lit.setdefault(_key_of(node, sold), []).append(node)
    states = {state.name: state for state in clouds}
    sizes = {name: state.desired for name, state in states.items()}
    refusals = {rest.offering: rest.why for rest in memory.backoffs if rest.until > now}
    known = {pool for pool, _, _, _ in (*sold, *lit)}
    bare: list[Key] = [
        (name, pool.instance_type, pool.capacity_type, "") for name, pool in policy.pools.items() if name not in known
    ]
    places = {name: place for place, name in enumerate(policy.pools)}
    keys = sorted({*sold, *lit, *bare}, key=lambda key: (places.get(key[0], len(places)), key))
    boots = _boots(states, lit)
    rows = []
    for key in keys:
        joined = [node.created_at for node in lit.get(key, []) if not node.ready and node.ready_since is None]
        since = [*boots.pop(key[0], []), *joined]
        row = _row(key, sold.get(key), lit.get(key, []), policy, sizes, refusals)
        row = msgspec.structs.replace(
            row,
            booting=len(since),
            boots_since=min(since, default=None),
            note=row.note or (stopped.get(row.pool, "") if row.could_buy else ""),
        )
        rows.append(row)
    return tuple(rows)


def _boots(states: Mapping[str, PoolState], lit: Mapping[Key, Sequence[Node]]) -> dict[str, list[datetime]]:
    """When each instance that has not joined was asked for, by pool."""
    there = {name for own in lit.values() for node in own for name in (node.name, node.instance)}
    return {
        name: [one.requested_at for one in state.booting if one.instance not in there] for name, state in states.items()
    }


def _row(
    key: Key,
    offering: Offering | None,
    nodes: Sequence[Node],
    policy: Policy,
    sizes: Mapping[str, int],
    refusals: Mapping[str, str],
) -> GpuRow:
    pool, instance_type, capacity_type, zone = key
    whole, parts = {True: 0, False: 0}, Counter[str]()
    for node in nodes:
        whole[_open(node)] += sum(free == MILLI_PER_GPU for free in node.devices)
        parts.update(node.slices if _open(node) else {})
    room = max(0, policy.pools[pool].max - sizes[pool]) if pool in policy.pools and pool in sizes else 0
    return GpuRow(
        pool=pool,
        gpu_model=next((node.gpu_model for node in nodes if node.gpu_model), offering.gpu_model if offering else ""),
        instance_type=instance_type,
        capacity_type=capacity_type,
        zone=zone,
        nodes=len(nodes),
        lit=sum(node.gpus for node in nodes),
        free=whole[True],
        closed=whole[False],
        parts={name: count for name, count in sorted(parts.items()) if count},
        could_buy=room * offering.gpus if offering and offering.name not in refusals else 0,
        usd_per_gpu_hour=offering.usd_per_hour / offering.gpus if offering and offering.gpus else None,
        note=_note(pool, offering, policy, sizes, refusals, room),
    )


def _note(
    pool: str,
    offering: Offering | None,
    policy: Policy,
    sizes: Mapping[str, int],
    refusals: Mapping[str, str],
    room: int,
) -> str:
    """Why none can be bought now, or nothing."""
    if pool not in policy.pools:
        return "not in the policy"
    if offering is None:
        return "not sold: no price, or the pool's cloud does not have it"
    if pool not in sizes:
        return "no such pool at its cloud"
    return refusals.get(offering.name, "") or ("" if room else f"at its max of {policy.pools[pool].max}")


def _open(node: Node) -> bool:
    """Whether any pod that fits gets a place there."""
    return node.ready and node.schedulable and not (node.marked or node.home or node.sick or node.conditions)


def _key(offering: Offering) -> Key:
    return offering.pool, offering.instance_type, offering.capacity_type, offering.zone


def _key_of(node: Node, sold: Mapping[Key, Offering]) -> Key:
    """The offering that the node is of: of its zone where such a one is sold, else of any."""
    own: Key = (node.pool, node.instance_type, node.capacity_type, node.zone)
    return own if own in sold or (*own[:3], "") not in sold else (*own[:3], "")
