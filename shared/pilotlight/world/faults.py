"""Faults of the world; they may be said anew while it runs."""

import msgspec

from pilotlight.errors import PilotlightError
from pilotlight.units import Seconds


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """The world's unkindness.

    ``boot_s`` overrides the catalogue's; ``gpu_lag_s`` passes between its end and a node's GPUs. For the last
    ``registered_s`` of its boot a node is in the cluster already. Nodes that are launched at once join within
    ``join_spread_s`` of each other, in an order that the seed draws. For ``untaint_s`` a node that is Ready carries the
    not-ready taint still, and takes no pods. A stopped node that is started is the Node that it was, with the home that
    it had; where ``registers_anew`` it was deleted meanwhile, and is born again with its pool's taint.
    ``shortage`` is the share of its hours in which a type has no capacity. ``quota_nodes`` caps live nodes.
    ``reclaim`` draws a life for every spot node, exponential at its type's interruptions an hour;
    ``notice_s`` warns so long before. Jobs keep a checkpoint every ``checkpoint_s`` of run time and
    take ``restore_s`` at the start after an interruption. ``replace_lost`` makes pools replace nodes
    that were taken, as cloud groups do. Binds on their way to a node land until ``bind_s`` after it was closed. A
    scheduler that is ``silent`` binds no pod, says nothing of any and renews no Lease.
    ``api_errors`` are (port method, error) pairs, each raised once, in order.
    """

    boot_s: Seconds | None = None  # None: the catalogue's.
    gpu_lag_s: Seconds = 0.0  # From the end of a node's boot to its GPUs.
    registered_s: Seconds = 0.0  # Last part of a boot, in which the node is in the cluster.
    join_spread_s: Seconds = 0.0  # Boots take up to so much longer, each by a draw of its own.
    untaint_s: Seconds = 0.0  # From Ready to the end of the not-ready taint.
    registers_anew: bool = False  # Nodes that are started after a stop are born again.
    shortage: float = 0.0  # Share of its hours in which a type has no capacity, 0 to 1.
    quota_nodes: int | None = None  # Live nodes at most; None is no cap.
    reclaim: bool = True  # Spot nodes are taken.
    checkpoint_s: Seconds = 600.0  # Run time from one checkpoint to the next.
    restore_s: Seconds = 60.0  # At the start after an interruption.
    notice_s: Seconds = 0.0  # From a notice to the node's end; 0 gives none.
    replace_lost: bool = False  # Pools replace nodes that were taken.
    bind_s: Seconds = 0.0  # Binds land so long after a node was closed.
    silent: bool = False  # The scheduler does nothing.
    pulls: dict[str, Seconds] = {}  # Seconds that an image takes to pull on a node that has it not, by image.
    api_errors: tuple[tuple[str, PilotlightError], ...] = ()  # (port method, error), each raised once.
