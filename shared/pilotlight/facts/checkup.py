"""What a check-up reads of a cluster, and what it says: one line a thing, with the fix."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.facts.capacity import CapacityType, Mode, Taint
from pilotlight.units import Seconds

Level = Literal["ok", "warning", "fault", "unknown"]
"""``unknown`` is what could not be looked at; only a ``fault`` fails a check-up."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. ``code`` is stable; ``fix`` says what to do, and is empty where all is well."""

    code: str
    subject: str
    verdict: Level
    what: str
    fix: str = ""


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


AUTOSCALER_NAMESPACE = "kube-system"
AUTOSCALER_STATUS = "cluster-autoscaler-status"
AUTOSCALER_PRIORITIES = "cluster-autoscaler-priority-expander"
AUTOSCALER_LEASE = "cluster-autoscaler"

ACCOUNT = "system:serviceaccount:pilotlight:pilotlight"
"""Our account, as an API server names it."""
LIMIT = "pilotlight-nodes"
"""The admission policy, and its binding, that limit what our account changes of nodes."""

LOOK: tuple[Right, ...] = (
    *(Right(verb="list", resource=what) for what in ("pods", "nodes", "namespaces")),
    *(Right(verb="list", resource=what) for what in ("persistentvolumes", "persistentvolumeclaims")),
    Right(verb="get", resource="pods"),
    Right(verb="get", resource="nodes"),
    Right(verb="list", resource="poddisruptionbudgets", group="policy"),
    *(Right(verb="list", resource=what, group="storage.k8s.io") for what in ("storageclasses", "csinodes")),
)
"""What every mode needs."""

TELL: tuple[Right, ...] = (Right(verb="create", resource="events", group="events.k8s.io"),)
"""What the modes that buy need besides: Events on pods, for their owners, and on nodes."""

TAKE: tuple[Right, ...] = (
    Right(verb="patch", resource="nodes"),
    Right(verb="create", resource="pods/eviction"),
)
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

SURVEY: tuple[Right, ...] = (
    Right(verb="list", resource="daemonsets", group="apps"),
    Right(verb="list", resource="deployments", group="apps"),
    Right(verb="list", resource="nodepools", group="karpenter.sh"),
    Right(verb="list", resource="scaledobjects", group="keda.sh"),
    Right(verb="get", resource="configmaps", namespace=AUTOSCALER_NAMESPACE, name=AUTOSCALER_PRIORITIES),
    *(
        Right(verb="get", resource=what, group="admissionregistration.k8s.io", name=LIMIT)
        for what in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    ),
)
"""What a check-up reads besides; without one of them it says what it could not see."""

ANNOTATING: tuple[Right, ...] = (Right(verb="patch", resource="pods"),)
"""Only where annotations are opted in."""

TOO_MUCH: tuple[Right, ...] = (Right(verb="get", resource="secrets"), Right(verb="delete", resource="pods"))
"""What Pilotlight's account never needs."""


def needed(mode: Mode) -> tuple[Right, ...]:
    """The rights a mode needs."""
    match mode:
        case "observe" | "advise":
            return LOOK
        case "scale-up":
            return LOOK + TELL
        case "act":
            return LOOK + TELL + TAKE


class SeenNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a pool, or one with GPUs. ``gpus`` are allocatable whole, ``slices`` parts of GPUs by resource name.

    ``capacity_type`` is None where no label says.
    """

    name: str
    pool: str
    gpus: int
    created_at: datetime
    ready: bool
    slices: Mapping[str, int] = {}
    instance_type: str = ""
    capacity_type: CapacityType | None = None
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()

    @property
    def has_gpu(self) -> bool:
        """Whether pods may have a GPU of it, or a part of one."""
        return bool(self.gpus or any(self.slices.values()))


class SeenSet(msgspec.Struct, frozen=True, kw_only=True):
    """A DaemonSet or Deployment. ``gpus`` is what each pod of it asks for; ``command`` is all its containers' words."""

    namespace: str
    name: str
    images: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    replicas: int = 0
    ready: int = 0
    gpus: int = 0

    @property
    def full_name(self) -> str:
        """As kubectl takes it: "namespace/name"."""
        return f"{self.namespace}/{self.name}"


class SeenNodePool(msgspec.Struct, frozen=True, kw_only=True):
    """A Karpenter NodePool. ``gpu`` says whether its nodes may have GPUs, ``limited`` whether it caps them."""

    name: str
    gpu: bool
    limited: bool
    replicas: int | None = None


class SeenScaledObject(msgspec.Struct, frozen=True, kw_only=True):
    """A KEDA ScaledObject and what it scales: "namespace/name" of a Deployment, where it is one."""

    namespace: str
    name: str
    target: str
    least: int = 0
    most: int = 100
    paused: bool = False


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What a service account's token says of itself: whose it is, when it was made and when it ends, where it does."""

    subject: str = ""
    made: datetime | None = None
    ends: datetime | None = None


class SeenMark(msgspec.Struct, frozen=True, kw_only=True):
    """One owner for whose sake a node takes no new pods, as the records say: "release", "budget", "rescue"."""

    node: str
    owner: str
    why: str
    since: datetime
    until: datetime | None = None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a node that was tried as our account, by a dry run.

    ``what`` is "label" for a label, "mark" for our taint in a pool of the policy, "stray" for it elsewhere.
    ``allowed`` is what came of it, None where that says nothing; ``said`` is the API server's own line.
    """

    what: Literal["label", "mark", "stray"]
    node: str
    allowed: bool | None
    said: str = ""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What limits our account's changes of nodes: the policy as it is there, and what it did when it was tried.

    ``policy`` is "parameters" for an earlier version's, None where it could not be read; ``pools`` are those it lists,
    None where that cannot be told. ``patches`` says whether our account may patch nodes at all, None
    where that cannot be told.
    """

    policy: Literal["absent", "there", "parameters"] | None = None
    bound: bool = False
    pools: tuple[str, ...] | None = None
    patches: bool | None = None
    trials: tuple[Trial, ...] = ()
    unproven: str = ""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """All that a check-up read. ``hidden`` is what could not be read, by what it is called, with the reason.

    ``allowed`` are rights by whether the API server grants them. ``token`` is the credential's, where it is one that
    tells of itself; ``limit`` is None where it was not looked at. ``watched``: somebody would lift our placement taints
    in our place.
    """

    server: str
    version: str
    at: datetime
    allowed: Mapping[Right, bool] = {}
    nodes: tuple[SeenNode, ...] = ()
    daemonsets: tuple[SeenSet, ...] = ()
    deployments: tuple[SeenSet, ...] = ()
    nodepools: tuple[SeenNodePool, ...] = ()
    scaled_objects: tuple[SeenScaledObject, ...] = ()
    autoscaler_status: str = ""
    autoscaler_priorities: str = ""
    hidden: Mapping[str, str] = {}
    token: Token | None = None
    limit: Limit | None = None
    watched: bool = False


TOKEN_WARNING_S: Seconds = 7 * 86_400.0
"""A credential that ends sooner is told of."""
SHORT_LIVED_S: Seconds = 2 * 86_400.0
"""One that was made for no longer is renewed by where it comes from: a mounted account, a plugin."""
