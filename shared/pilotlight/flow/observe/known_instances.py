"""Which pool and node each instance was: for notices that come when the cluster does not show it any more.

Written by a reconcile's look, where something is new in it. What it reads each time is no more than is there: what
looks miss lies apart, for two days from then, because log sinks and queues deliver late. Node objects of stopped
instances outlive a stop, and a start does not make them anew.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from pilotlight.errors import Conflict
from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.interruption.interruption import Instance
from pilotlight.facts.nodes.pool_state import Booting, PoolState
from pilotlight.facts.workload import Finding
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import flight_log
from pilotlight.state_schema.instance_records import GONE, INSTANCES
from pilotlight.units import count_of

NAMED = 3
"""A finding names so many instances."""

REFRESH = timedelta(hours=1)
"""How old "last seen" may become before it is written again."""


def learn(deps: Deps, pools: Sequence[PoolState], nodes: Sequence[Node], now: datetime) -> None:
    """Remember what a look at ``now`` shows. Where another look is at it, that one's will do."""
    was = INSTANCES.read(deps.state, deps.name)
    known = was.values
    seen = {b.instance: (p.name, _node_of(known, b.instance)) for p in pools for b in p.booting}
    seen |= {n.instance: n.place for n in nodes if n.instance}
    old = now - REFRESH
    new = {
        name: Instance(pool=pool, node=node, seen_at=now)
        for name, (pool, node) in seen.items()
        if (one := known.get(name)) is None or one.seen_at <= old or one.node != node or one.pool != pool
    }
    gone = {name: one for name, one in known.items() if name not in seen} if known.keys() - seen.keys() else {}
    if not new and not gone:
        return
    with suppress(Conflict):
        GONE.add(deps.state, f"{deps.name}/{now:%Y-%m-%dT%H}", gone)
        INSTANCES.change(deps.state, deps.name, was, new, gone)


def with_doubts(deps: Deps, pools: Sequence[PoolState], nodes: Sequence[Node]) -> tuple[PoolState, ...]:
    """The pools with why an instance of theirs that this look shows as no node may be one all the same.

    It was a node at an earlier look, or a node of its pool does not say which instance it is.
    """
    known = INSTANCES.read(deps.state, deps.name).values
    nameless = {node.pool: node.name for node in reversed(nodes) if not node.instance}
    return tuple(_doubted(pool, known, nameless.get(pool.name, "")) for pool in pools)


def _doubted(pool: PoolState, known: Mapping[str, Instance], nameless: str) -> PoolState:
    booting: list[Booting] = []
    for one in pool.booting:
        if one.unmade:  # No node stands for a name.
            booting.append(one)
            continue
        doubt = f"it was node {node}" if (node := _node_of(known, one.instance)) else ""
        doubt = f"node {nameless} has no providerID" if nameless else doubt
        booting.append(replace(one, doubt=doubt) if doubt and not one.going else one)
    return replace(pool, booting=tuple(booting)) if booting else pool


def _node_of(known: Mapping[str, Instance], instance: str) -> str:
    """The node that an instance was seen as; empty for one that never was a node."""
    return known[instance].node if instance in known else ""


def kept_in_doubt(pools: Sequence[PoolState], late: datetime) -> tuple[Finding, ...]:
    """Pools with instances that were asked for before ``late``, are shown as no node, and stay all the same."""
    found: list[Finding] = []
    for pool in pools:
        held = [b for b in pool.booting if b.doubt and b.requested_at < late]
        if held:
            named = ", ".join(f"{b.instance} ({b.doubt})" for b in held[:NAMED])
            more = f" and {len(held) - NAMED} more" if len(held) > NAMED else ""
            message = (
                f"{named}{more}: failed nodes cannot be told from working ones, so none is released. "
                "See that its nodes are there and carry a spec.providerID, and end broken ones by hand"
            )
            found.append(Finding(subject=f"pool {pool.name}", code="instance-without-node", message=message))
    return tuple(found)


def find_instance(deps: Deps, instance: str) -> Instance | None:
    """Where an instance was last seen; its node's name will do too."""
    known: dict[str, Instance] = {}
    for entry in GONE.table.scan(deps.state, f"{deps.name}/"):
        known |= entry.value.items
    known |= INSTANCES.read(deps.state, deps.name).values
    return known.get(instance) or next((one for one in known.values() if one.node == instance), None)


def find_booting(deps: Deps, instance: str, now: datetime) -> Instance | None:
    """An instance on its way that no tick has seen yet, as its cloud tells it; nothing is asked where none is."""
    for pool in deps.pools.describe() if flight_log.in_flight(deps.state, deps.name) else ():
        if any(instance == one.instance for one in pool.booting):
            return Instance(pool=pool.name, node="", seen_at=now)
    return None


def in_their_pools(view: ClusterView, pools: Sequence[PoolState]) -> ClusterView:
    """The view with nodes that are machines of ours in the pools that asked for these, whatever their labels say."""
    own = {one.instance: pool.name for pool in pools for one in pool.asked if one.instance}
    if all(own.get(node.instance, node.pool) == node.pool for node in view.nodes):
        return view
    nodes = tuple(replace(node, pool=own.get(node.instance, node.pool)) for node in view.nodes)
    return replace(view, nodes=nodes)


def without_stopped(view: ClusterView, pools: Sequence[PoolState]) -> tuple[ClusterView, tuple[Node, ...]]:
    """The view without nodes that stand stopped, which no pool's size counts, and those apart.

    A node that was started again is as young as its last start, where its cloud tells that.
    """
    stopped = frozenset(one for pool in pools for one in pool.stopped)
    begun = {one.instance: one.requested_at for pool in pools if pool.stops for one in pool.booting}
    nodes = tuple(_as_begun(node, begun.get(node.instance)) for node in view.nodes if node.instance not in stopped)
    return replace(view, nodes=nodes), tuple(node for node in view.nodes if node.instance in stopped)


def _as_begun(node: Node, begun: datetime | None) -> Node:
    from pilotlight.flow.records.ledger import CLOUD_SKEW

    return node if begun is None or begun <= node.created_at + CLOUD_SKEW else replace(node, created_at=begun)


def nodes_without_instance(nodes: Sequence[Node], pools: Sequence[PoolState]) -> tuple[Finding, ...]:
    """Pools that show more nodes than they are meant to have instances: node objects were left behind."""
    shown = Counter(node.pool for node in nodes)
    return tuple(
        Finding(
            subject=f"pool {p.name}",
            code="node-without-instance",
            message=f"its cloud has {count_of(p.desired, 'instance')} for {count_of(shown[p.name], 'node')}: delete "
            "the node objects left behind",
        )
        for p in pools
        if shown[p.name] > p.desired and shown[p.name] > p.size_beside(nodes)
    )
