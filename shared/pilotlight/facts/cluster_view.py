"""One read of a cluster: its nodes, the pods that wait, and who else scales it."""

from datetime import datetime

import msgspec

from pilotlight.facts.capacity import Node
from pilotlight.facts.workload import Finding, Parked, PodDemand, PodShape, Queued, Reserving


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

    Nothing is bought for ``others``, and a node that we closed may be one that they fit.
    """

    pending: tuple[PodDemand, ...] = ()  # GPU pods that wait.
    nodes: tuple[Node, ...] = ()  # Those with GPUs.
    findings: tuple[Finding, ...] = ()  # What a person must mend.
    scalers: tuple[Scaler, ...] = ()  # Who else scales nodes.
    others: tuple[PodDemand, ...] = ()  # Pods that wait and want no GPU: theirs are 0.
    watched: bool = True  # Somebody lifts our taints should we fall silent.
    limited: bool | None = True  # Our account may add homes to a pod and change nothing else; None: not known.
    around: dict[str, dict[str, int]] = {}  # Pods that are there, in each domain, by ``NearRule.key``.
    daemons: tuple[Daemon, ...] = ()  # They will be on new nodes too.
    queued: tuple[Queued, ...] = ()  # Work whose pods are among those that wait, and that our answer lets in.
    reserving: tuple[Reserving, ...] = ()  # All that has its quota and a check of ours.
    parked: tuple[Parked, ...] = ()  # Work that we took out of its queue until there is money.
