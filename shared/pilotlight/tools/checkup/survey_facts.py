"""A survey: all that a check-up reads of a cluster."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

import msgspec

from pilotlight.facts.capacity import CapacityType, Taint
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.limits.checks import Token
from pilotlight.facts.money.gates import GateState
from pilotlight.facts.workload import Requirement, Toleration
from pilotlight.tools.checkup.rights import Right


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
        """True where pods may have a GPU of it, or a part of one."""
        return bool(self.gpus or any(self.slices.values()))


class SeenSet(msgspec.Struct, frozen=True, kw_only=True):
    """A DaemonSet or Deployment. ``gpus`` is what each pod of it asks for; ``command`` is all its containers' words.

    ``terms`` are where its pods may run, ``bears`` their tolerations, ``homes`` those of homes ("*": of every one).
    """

    namespace: str
    name: str
    images: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    replicas: int = 0
    ready: int = 0
    gpus: int = 0
    terms: tuple[tuple[Requirement, ...], ...] = ()
    bears: tuple[Toleration, ...] = ()
    homes: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """As kubectl takes it: "namespace/name"."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_plugin(self) -> bool:
        """True where it makes GPUs allocatable, by its name and images."""
        return any(part in text for part in _PLUGINS for text in (self.name, *self.images))

    @property
    def tolerates_homes(self) -> bool:
        """True where its pods come to a node whatever its home."""
        every = any(one.operator == "Exists" and not one.key and one.effect in ("", "NoSchedule") for one in self.bears)
        return every or "*" in self.homes

    def belongs(self, node_labels: Mapping[str, str], taints: Iterable[Taint]) -> bool:
        """True where its pods may run on a node with these labels and taints."""
        return selects(node_labels, self.terms) and untolerated_taint(taints, self.bears) is None


_PLUGINS = ("nvidia-device-plugin", "nvidia-gpu-device-plugin", "gpu-operator", "k8s-device-plugin", "amdgpu-device")
"""Parts of the names and images of DaemonSets that make GPUs allocatable."""


class SeenNodePool(msgspec.Struct, frozen=True, kw_only=True):
    """A Karpenter NodePool. ``gpu`` says whether its nodes may have GPUs, ``limited`` whether it caps them."""

    name: str
    gpu: bool
    limited: bool
    replicas: int | None = None
    gate: GateState | None = None  # What a limit of ours would go by, without its claims.
    replaces: bool = False  # It may replace nodes by drift or consolidation.
    azure: bool = False  # Azure's provider makes its machines.

    @property
    def buys(self) -> bool:
        """True where Karpenter may make nodes by it: it is not static, and its limit of GPUs is not 0."""
        return self.replicas is None and (self.gate is None or self.gate.limit != 0)


class SeenClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A NodeClaim that its provider has not launched, and why, in the provider's own words."""

    name: str
    nodepool: str
    since: datetime
    why: str = ""


class SeenScaledObject(msgspec.Struct, frozen=True, kw_only=True):
    """A KEDA ScaledObject and what it scales: "namespace/name" of a Deployment, where it is one."""

    namespace: str
    name: str
    target: str
    least: int = 0
    most: int = 100
    paused: bool = False


class SeenMark(msgspec.Struct, frozen=True, kw_only=True):
    """One owner for whose sake a node takes no new pods, as the records say: "release", "budget", "rescue"."""

    node: str
    owner: str
    why: str
    since: datetime
    until: datetime | None = None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a node or pod, or one eviction, that was tried as our account, by a dry run.

    ``what`` is "label" for a label; of a node "mark" for our taint in a pool of the policy, "stray" for it elsewhere;
    of a pod "home" for a toleration of a home, "toleration" for one of all there is; an eviction is "plain" that names
    no node, "claimed" that names another than the pod's, "outside" off a node of no pool of the policy, "evicted" off
    one of a pool. ``of`` is its name. ``allowed`` is what came of it, None where that says nothing; ``said`` is the API
    server's own line.
    """

    what: Literal["label", "mark", "stray", "home", "toleration", "plain", "claimed", "outside", "evicted"]
    of: str
    allowed: bool | None
    said: str = ""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """The limit on our account's changes of nodes, of pods, or on its evictions: the policy as it is there, and what it
    did when tried.

    ``policy`` is None where it could not be read; ``pools`` are those it lists, None where that cannot be told.
    ``patches`` says whether our account may do such a thing at all, None where that cannot be told.
    """

    policy: Literal["absent", "there"] | None = None
    bound: bool = False
    pools: tuple[str, ...] | None = None
    patches: bool | None = None
    trials: tuple[Trial, ...] = ()
    unproven: str = ""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """All that a check-up read. ``hidden`` is what could not be read, by what it is called, with the reason.

    ``allowed`` are rights by whether the API server grants them. ``token`` is the credential's, where it is one that
    tells of itself; ``limit``, ``pod_limit`` and ``eviction_limit`` are None where they were not looked at.
    ``watched``: somebody would open the nodes that we keep in our place.
    """

    server: str  # The API server's address.
    version: str  # The API server's.
    at: datetime  # The moment of the survey, UTC.
    allowed: Mapping[Right, bool] = {}  # Rights, by whether the API server grants them.
    nodes: tuple[SeenNode, ...] = ()  # Nodes with GPUs.
    daemonsets: tuple[SeenSet, ...] = ()  # All that are read.
    deployments: tuple[SeenSet, ...] = ()  # All that are read.
    nodepools: tuple[SeenNodePool, ...] = ()  # Karpenter's.
    waiting: tuple[SeenClaim, ...] = ()  # What Karpenter asked for and is not launched, of gated NodePools.
    scaled_objects: tuple[SeenScaledObject, ...] = ()  # KEDA's.
    autoscaler_status: str = ""  # Cluster-autoscaler's own text.
    autoscaler_priorities: str = ""  # Of its priority expander, as YAML.
    hidden: Mapping[str, str] = {}  # Names of what could not be read, with the reason.
    token: Token | None = None  # The credential's, where it tells of itself.
    limit: Limit | None = None  # On our account's changes of nodes; None: not looked at.
    pod_limit: Limit | None = None  # The same on its changes of pods.
    eviction_limit: Limit | None = None  # The same on its evictions.
    watched: bool = False  # Another would open the nodes that we keep, in our place.
