"""One read of a cluster: its nodes, the pods that wait, and who else scales it."""

from datetime import datetime

import msgspec

from pilotlight.facts.capacity import Node
from pilotlight.facts.workload import Finding, PodDemand, PodShape, Queued, Reserving


class Scaler(msgspec.Struct, frozen=True, kw_only=True):
    """Another autoscaler that was alive at ``seen_at``, and the groups it scales; none where it does not tell them."""

    name: str
    seen_at: datetime
    groups: tuple[str, ...] = ()


class Daemon(msgspec.Struct, frozen=True, kw_only=True):
    """The pod of a DaemonSet, which takes its room on every new node that it selects, before any other pod."""

    name: str
    takes: PodShape


class ClusterView(msgspec.Struct, frozen=True, kw_only=True):
    """One read of the cluster: GPU pods that wait, nodes, pods that no node would help, and who else scales nodes.

    ``others`` are pods that wait and want no GPU (theirs are 0): nothing is bought for them, and a node that we closed
    may be one that they fit. ``watched``: somebody lifts our taints should we fall silent. ``limited``: our account may
    change nothing of a pod but its tolerations of homes. ``around`` counts by ``NearRule.key`` the pods that are there
    already, in each domain. ``daemons`` will be on new nodes too.
    ``queued`` is work whose pods are among those that wait, and that our answer lets in; ``reserving`` all that has
    its quota and a check of ours.
    """

    pending: tuple[PodDemand, ...] = ()
    nodes: tuple[Node, ...] = ()
    findings: tuple[Finding, ...] = ()
    scalers: tuple[Scaler, ...] = ()
    others: tuple[PodDemand, ...] = ()
    watched: bool = True
    limited: bool = True
    around: dict[str, dict[str, int]] = {}
    daemons: tuple[Daemon, ...] = ()
    queued: tuple[Queued, ...] = ()
    reserving: tuple[Reserving, ...] = ()
