"""Rights on a cluster, one by one, and what each mode, look and check-up needs of them."""

import msgspec

from pilotlight.codec.kubernetes.nodes.autoscaler_evidence import (
    AUTOSCALER_LEASE,
    AUTOSCALER_NAMESPACE,
    AUTOSCALER_STATUS,
    SCHEDULER_LEASE,
)
from pilotlight.facts.modes import Mode

AUTOSCALER_PRIORITIES = "cluster-autoscaler-priority-expander"


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """Leave to do one thing in every namespace, as RBAC writes it; ``resource`` with its subresource after a slash.

    ``name`` is the one object it is about, in ``namespace``; empty for all.
    """

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """As people say it: "list nodes", "list apps/deployments"."""
        what = f"{self.group}/{self.resource}" if self.group else self.resource
        return f"{self.verb} {what}" + (f" {self.name}" if self.name else "")


ACCOUNT = "system:serviceaccount:pilotlight:pilotlight"
"""Our account, as an API server names it."""
LIMIT = "pilotlight-nodes"
"""The admission policy, and its binding, that limit what our account changes of nodes."""
POD_LIMIT = "pilotlight-tolerations"
"""The same for pods."""
EVICTION_LIMIT = "pilotlight-evictions"
"""The same for what it evicts: the first of three policies, which stand in one file."""

LOOK: tuple[Right, ...] = (
    *(Right(verb="list", resource=what) for what in ("pods", "nodes", "namespaces")),
    *(Right(verb="list", resource=what) for what in ("persistentvolumes", "persistentvolumeclaims")),
    Right(verb="get", resource="pods"),
    Right(verb="get", resource="nodes"),
    Right(verb="list", resource="poddisruptionbudgets", group="policy"),
    *(Right(verb="list", resource=what, group="storage.k8s.io") for what in ("storageclasses", "csinodes")),
    *(Right(verb="list", resource=what, group="storage.k8s.io") for what in ("csidrivers", "csistoragecapacities")),
)
"""What every mode needs."""

TELL: tuple[Right, ...] = (Right(verb="create", resource="events", group="events.k8s.io"),)
"""What the modes that buy need besides: Events on pods, for their owners, and on nodes."""

EVICT = Right(verb="create", resource="pods/eviction")
"""May be granted in namespaces of its own, instead of in all."""

TAKE: tuple[Right, ...] = (Right(verb="patch", resource="nodes"), Right(verb="patch", resource="pods"), EVICT)
"""What ``act`` needs besides."""

GANGS: tuple[Right, ...] = (
    Right(verb="list", resource="podgroups", group="scheduling.volcano.sh"),
    Right(verb="list", resource="podgroups", group="scheduling.x-k8s.io"),
    Right(verb="list", resource="podgroups", group="scheduling.run.ai"),
    Right(verb="list", resource="podgroups", group="scheduling.k8s.io"),
    Right(verb="list", resource="leaderworkersets", group="leaderworkerset.x-k8s.io"),
    Right(verb="list", resource="workloads", group="kueue.x-k8s.io"),
    Right(verb="list", resource="resourceflavors", group="kueue.x-k8s.io"),
    *(
        Right(verb="list", resource=what, group="resource.k8s.io")
        for what in ("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates")
    ),
)
"""What a look lists where the cluster serves it: who starts together, queued work without pods, devices by claim."""

EVIDENCE: tuple[Right, ...] = (
    Right(verb="get", resource="configmaps", namespace=AUTOSCALER_NAMESPACE, name=AUTOSCALER_STATUS),
    Right(
        verb="get",
        resource="leases",
        group="coordination.k8s.io",
        namespace=AUTOSCALER_NAMESPACE,
        name=AUTOSCALER_LEASE,
    ),
)
"""What a look reads of cluster-autoscaler, to leave alone what it scales; without them nothing is known of it."""

HEARTBEAT: tuple[Right, ...] = (
    Right(
        verb="get",
        resource="leases",
        group="coordination.k8s.io",
        namespace=AUTOSCALER_NAMESPACE,
        name=SCHEDULER_LEASE,
    ),
)
"""What is read of kube-scheduler where a pod waits beside a node with room; without it only its binds show it alive."""

PULLS: tuple[Right, ...] = (Right(verb="list", resource="events"),)
"""What tells how long images took to pull; without it a new node's pull is not counted."""

SURVEY: tuple[Right, ...] = (
    Right(verb="list", resource="daemonsets", group="apps"),
    Right(verb="list", resource="deployments", group="apps"),
    Right(verb="list", resource="nodepools", group="karpenter.sh"),
    Right(verb="list", resource="scaledobjects", group="keda.sh"),
    Right(verb="get", resource="configmaps", namespace=AUTOSCALER_NAMESPACE, name=AUTOSCALER_PRIORITIES),
    *(
        Right(verb="get", resource=what, group="admissionregistration.k8s.io", name=name)
        for name in (LIMIT, POD_LIMIT, EVICTION_LIMIT)
        for what in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    ),
)
"""What a check-up reads besides; without one of them it says what it could not see."""

MACHINES: tuple[Right, ...] = tuple(
    Right(verb="list", resource=what, group="karpenter.sh") for what in ("nodepools", "nodeclaims")
)
"""What a look at Karpenter reads, where a pool is its."""

GATES: tuple[Right, ...] = (*MACHINES, Right(verb="patch", resource="nodepools", group="karpenter.sh"))
"""What limits of Karpenter's NodePools need, where the policy has some."""

CLAIMS: tuple[Right, ...] = (
    *MACHINES,
    *(Right(verb=verb, resource="nodeclaims", group="karpenter.sh") for verb in ("create", "delete")),
)
"""What buying by Karpenter's claims needs, where a pool is bought for so."""

QUEUES: tuple[Right, ...] = (
    Right(verb="patch", resource="workloads/status", group="kueue.x-k8s.io"),
    Right(verb="patch", resource="workloads", group="kueue.x-k8s.io"),
    Right(verb="get", resource="clusterqueues", group="kueue.x-k8s.io"),
    Right(verb="create", resource="events", group="events.k8s.io"),
)
"""What answering Kueue's check needs. The first alone lets work in, and refuses it without end."""

TOO_MUCH: tuple[Right, ...] = (Right(verb="get", resource="secrets"), Right(verb="delete", resource="pods"))
"""What Pilotlight's account never needs."""


def rights_of_mode(mode: Mode) -> tuple[Right, ...]:
    """The rights a mode needs."""
    match mode:
        case "observe" | "advise":
            return LOOK
        case "scale-up":
            return LOOK + TELL
        case "act":
            return LOOK + TELL + TAKE
