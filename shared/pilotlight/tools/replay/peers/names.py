"""Peers by name."""

from collections.abc import Callable

from pilotlight.errors import BadInput
from pilotlight.tools.replay.peers.base import Peer
from pilotlight.tools.replay.peers.cluster_autoscaler import IDLE_S, ClusterAutoscaler
from pilotlight.tools.replay.peers.karpenter import Karpenter
from pilotlight.tools.replay.peers.keda_queue import Keda
from pilotlight.tools.replay.peers.s0_loop import S0Loop
from pilotlight.units import Seconds

ALWAYS_ON = "always-on"
PEERS = (
    ALWAYS_ON,
    "cluster-autoscaler",
    "cluster-autoscaler-pinned[:SECONDS]",
    "cluster-autoscaler-priority[:SECONDS]",
    "karpenter",
    "karpenter-pinned:SECONDS",
    "karpenter-when-empty:SECONDS",
    "keda",
    "s0-loop",
)
"""Every name that ``--against`` takes. SECONDS is how long an empty node is kept."""


def peer(name: str, seed: int = 0) -> Peer:
    """A fresh peer by its name; ``always-on`` is no loop and has none. Raises ``BadInput`` listing the names."""
    kind, _, seconds = name.partition(":")
    plain: dict[str, Callable[[], Peer]] = {
        "cluster-autoscaler": lambda: ClusterAutoscaler(name, seed),
        "karpenter": lambda: Karpenter(name),
        "keda": Keda,
        "s0-loop": S0Loop,
    }
    if name in plain:
        return plain[name]()
    if kind in ("cluster-autoscaler-pinned", "cluster-autoscaler-priority"):
        idle_s, cheapest = _seconds(name, seconds) if seconds else IDLE_S, kind.endswith("priority")
        return ClusterAutoscaler(name, seed, pinned=not cheapest, idle_s=idle_s, priority=cheapest)
    if kind in ("karpenter-pinned", "karpenter-when-empty") and seconds:
        return Karpenter(name, pinned=kind.endswith("pinned"), idle_s=_seconds(name, seconds), consolidates=False)
    raise _unknown(name)


def check_peer(name: str) -> str:
    """The name, if there is such a peer. Raises ``BadInput`` listing the names."""
    if name != ALWAYS_ON:
        peer(name)
    return name


def _seconds(name: str, text: str) -> Seconds:
    if not (text.isascii() and text.isdecimal() and len(text) < 8):
        raise _unknown(name)
    return float(text)


def _unknown(name: str) -> BadInput:
    return BadInput(f"no peer {name!r}: choose from {', '.join(PEERS)}")
