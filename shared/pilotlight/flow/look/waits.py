"""How long pods waited that nodes were bought for, counted as each part of the wait ends."""

from collections.abc import Sequence
from datetime import datetime

from pilotlight.facts.capacity import InFlight, Node
from pilotlight.facts.tally import Tally
from pilotlight.flow.look.snapshot import CLOUD_SKEW, Snapshot


def bought(tally: Tally, snapshot: Snapshot, demands: Sequence[str], sent_at: datetime | None) -> Tally:
    """A purchase was sent: how old each of its pods was at the look, and what deciding took."""
    own = set(demands)
    for pod in snapshot.view.pending:
        if pod.uid in own:
            tally = tally.took("detect", (snapshot.now - pod.created_at).total_seconds())
    return tally.took("decide", (sent_at - snapshot.now).total_seconds()) if sent_at else tally


def arrived(tally: Tally, entry: InFlight, nodes: Sequence[Node]) -> Tally:
    """A purchase is over: when the nodes became ready that its pods are on, and when those began."""
    own = set(entry.demands)
    for node in nodes:
        held = [pod for pod in node.pods if pod.uid in own]
        began = node.ready_since or node.created_at
        if not held or node.pool != entry.pool or began < entry.requested_at - CLOUD_SKEW:
            continue
        tally = tally.took("boot", (began - entry.requested_at).total_seconds())
        for pod in held:
            if pod.started_at is not None:
                tally = tally.took("bind", (pod.started_at - began).total_seconds())
    return tally
