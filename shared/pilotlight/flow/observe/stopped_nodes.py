"""Node objects of stopped instances: they outlive a stop, and a start does not make them anew."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from pilotlight.facts.capacity import Node
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.flow.records.ledger import CLOUD_SKEW


def without_stopped(view: ClusterView, pools: Sequence[PoolState]) -> tuple[ClusterView, tuple[Node, ...]]:
    """The view without nodes that stand stopped, which no pool's size counts, and those apart.

    A node that was started again is as young as its last start, where its cloud tells that.
    """
    stopped = frozenset(one for pool in pools for one in pool.stopped)
    begun = {one.instance: one.requested_at for pool in pools if pool.stops for one in pool.booting}
    nodes = tuple(_as_begun(node, begun.get(node.instance)) for node in view.nodes if node.instance not in stopped)
    return replace(view, nodes=nodes), tuple(node for node in view.nodes if node.instance in stopped)


def _as_begun(node: Node, begun: datetime | None) -> Node:
    return node if begun is None or begun <= node.created_at + CLOUD_SKEW else replace(node, created_at=begun)
