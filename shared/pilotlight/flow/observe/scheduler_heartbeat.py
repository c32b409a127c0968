"""Heartbeats of schedulers: the last pod that one bound, and the default one's Lease. Read only where a doubt asks."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from pilotlight.decide.fit.fit_mismatch import Heard
from pilotlight.errors import Retry
from pilotlight.facts.capacity import Node
from pilotlight.flow.deps import Deps
from pilotlight.ports.cluster import ScheduledCluster

FRESH = timedelta(seconds=60)
"""A bind so young is heartbeat enough: the Lease is not read."""


def last_heard(deps: Deps, nodes: Iterable[Node], now: datetime) -> Heard:
    """When schedulers last showed that they live.

    A bind is told by the start of its pod, of those that hold a GPU; DaemonSets' and static pods say nothing. Where the
    Lease cannot be read, for want of the right or since a hosted control plane keeps it elsewhere, binds alone count.
    """
    binds = (pod.started_at for node in nodes for pod in node.gpu_pods if pod.started_at is not None)
    bound = max(binds, default=None)
    if (bound is not None and now - bound < FRESH) or not isinstance(deps.cluster, ScheduledCluster):
        return Heard(bound)
    try:
        return Heard(bound, deps.cluster.scheduler_beat())
    except Retry:
        return Heard(bound)
