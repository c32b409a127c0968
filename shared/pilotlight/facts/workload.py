"""Demand of pods that want to run, in the terms a scheduler decides by."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Literal

import msgspec

from pilotlight.facts.fit.claimed_devices import CLAIMED, Claimed
from pilotlight.units import MILLI_PER_GPU, Seconds

WorkloadClass = Literal["training", "serving", "notebook", "batch"]

NVIDIA = "nvidia.com/gpu"
AMD = "amd.com/gpu"
SHARED = "nvidia.com/gpu.shared"
MIG_PREFIX = "nvidia.com/mig-"
WHOLE_DEVICES = (NVIDIA, AMD)
"""Resources whose unit is a whole GPU. No two of them are the same device."""


ATTACHABLE = "attachable-volumes-csi-"
"""A resource of this name, less this, is a storage driver's room for volumes on a node."""
NO_LIMIT = 1 << 31
"""The room of a driver whose limit is not known."""


def unlisted_amount(resource: str) -> int:
    """Amount of a resource that is not listed: nothing, but of a driver's room no limit is known."""
    return NO_LIMIT if resource.startswith(ATTACHABLE) else 0


def part_of_gpu(resource: str) -> bool:
    """True where a resource's unit is a part of a GPU: a MIG profile or a shared replica."""
    return resource == SHARED or resource.removeprefix(CLAIMED).startswith(MIG_PREFIX)


@lru_cache(maxsize=1024)
def is_gpu(resource: str) -> bool:
    """True where a resource's unit is a GPU or a part of one."""
    return resource.removeprefix(CLAIMED) in WHOLE_DEVICES or part_of_gpu(resource)


class GpuRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Devices of one resource name. ``milli`` < 1000 is a share of one device, only with ``count`` 1."""

    count: int
    milli: int = MILLI_PER_GPU
    resource: str = NVIDIA

    @property
    def total_milli(self) -> int:
        """Thousandths of a device in all."""
        return self.count * self.milli

    def __str__(self) -> str:
        """As people say it: "2 GPUs", "0.25 GPU", "1 nvidia.com/mig-1g.10gb"."""
        if self.resource.removeprefix(CLAIMED) not in (NVIDIA, AMD):
            return f"{self.count} {self.resource.removeprefix(CLAIMED)}"
        if self.milli < MILLI_PER_GPU:
            return f"{self.milli / MILLI_PER_GPU:g} GPU"
        return f"{self.count} GPU{'s' if self.count != 1 else ''}"


NO_GPU = GpuRequest(count=0, resource="")
"""No device by resource: the pod asks by claim, or its devices are left aside."""


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One expression of node affinity on a node's labels."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class Toleration(msgspec.Struct, frozen=True, kw_only=True):
    """A toleration. Empty ``key`` with Exists tolerates all; empty ``effect`` every effect."""

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = ""
    effect: str = ""

    @property
    def takes_all(self) -> bool:
        """True where it bears every taint that keeps pods off."""
        return not self.key and self.operator == "Exists" and self.effect in ("", "NoSchedule")


class NearRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule on the pods of ``group`` that are in one domain: on the nodes that share a value of label ``topology``.

    "with": one of them is in the pod's domain, or none is anywhere and the pod is its ``own`` first. "apart": none is.
    "spread": the domain has at most ``max_skew`` more of them than the least; with fewer than ``min_domains`` domains
    the least is 0. Its domains are those of nodes that carry all of ``keys`` and that ``nodes`` (terms) and, where not
    None, ``bears`` allow. ``group`` and ``key`` are digests: rules with one ``key`` count the same. ``says`` names it.
    """

    kind: Literal["with", "apart", "spread"]  # "with" is affinity, "apart" anti-affinity, "spread" topology spread.
    key: str  # Digest: rules with one key count the same.
    group: str  # Digest of the pods that it counts.
    topology: str  # Label whose values are the domains.
    own: bool = False  # The pod is one of the group itself.
    max_skew: int = 1  # Of "spread".
    min_domains: int = 1  # Of "spread".
    keys: tuple[str, ...] = ()  # Labels that nodes of its domains carry.
    nodes: tuple[tuple[Requirement, ...], ...] = ()  # Terms that nodes of its domains meet.
    bears: tuple[Toleration, ...] | None = None  # Tolerations that decide which nodes count; None: all do.
    says: str = ""  # Its name for people.

    @property
    def minds_homes(self) -> bool:
        """True where a pod spreads over open nodes and its own homes alone: taints count, and it does not bear all."""
        return self.bears is not None and not any(one.takes_all for one in self.bears)

    def key_at(self, node: str) -> str:
        """The key of what it counts on one node that has a home."""
        return f"{self.key}@{node}"


class Near(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's ``rules``, the ``groups`` of other rules that it is in itself, and the host ``ports`` it takes."""

    rules: tuple[NearRule, ...] = ()
    groups: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()

    @property
    def picky(self) -> bool:
        """True where each pod of the shape has to be placed by itself."""
        return bool(self.rules or self.ports)


class Gang(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that start together or not at all. ``size`` is the number of pods it needs."""

    key: str
    size: int


class PodTraits(msgspec.Struct, frozen=True, kw_only=True):
    """Traits that tell a pod's purpose. ``words`` are its commands and arguments; ``memory`` is bytes.

    ``owner_kind`` is the kind of the object that made it, as "PyTorchJob".
    """

    labels: dict[str, str] = {}
    images: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    owner_kind: str = ""
    gpus: int = 0
    memory: int = 0


Classifier = Callable[[PodTraits], tuple[WorkloadClass, str]]
"""Tells a pod's class, and the reason in words."""


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A deadline: ``work_s`` of run are to end ``by`` then. All pods that a ``job`` has in turn name the same."""

    job: str
    by: datetime
    work_s: Seconds


class PodShape(msgspec.Struct, frozen=True, kw_only=True):
    """All of a pod that decides where it can run: pods of equal shape are interchangeable to a plan. Build with
    ``shape()``.
    """

    gpu: GpuRequest  # Devices that it asks for.
    cpu_milli: int = 0  # Thousandths of a CPU.
    memory: int = 0  # Bytes.
    ephemeral: int = 0  # Bytes.
    other: tuple[tuple[str, int], ...] = ()  # Further resources by name (hugepages in bytes, "rdma/hca"), sorted.
    # Alternatives (OR) of requirements that must all hold (AND); empty means anywhere.
    terms: tuple[tuple[Requirement, ...], ...] = ()
    # The part of them that its volumes ask for, terms for each volume.
    reach: tuple[tuple[tuple[Requirement, ...], ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()  # Taints that it bears.
    gpu_models: tuple[str, ...] = ()  # From its annotation; empty: the class decides.
    min_gpu_memory_gib: int = 0  # GiB of one device, from its annotation; 0: the class decides.
    workload_class: WorkloadClass = "batch"  # As its claims count.
    class_reason: str = ""  # Why it is of that class.
    team: str = ""  # The team that pays.
    priority: int = 0  # As its claims count.
    max_run_s: Seconds = 0  # Seconds; 0 where it names no deadline.
    checkpoint_s: Seconds = 0  # Seconds between its checkpoints; 0 where it names none.
    gang: Gang | None = None  # Pods that it starts together with.
    near: Near | None = None  # None where no pod near by matters to it.
    due: Due | None = None  # None where its job names no deadline.
    claimed: Claimed | None = None  # Devices that it asks for by claim.
    key: str = ""  # Digest of all the rest.

    @property
    def beside_size(self) -> tuple[object, ...]:
        """All that decides where it may be bought room, and at what price, but CPU, memory and disk."""
        asks = self.gpu, self.other, self.terms, self.reach, self.tolerations, self.gpu_models, self.min_gpu_memory_gib
        size = self.gang.size if self.gang is not None else 0
        runs = self.workload_class, self.team, self.max_run_s, self.checkpoint_s, self.due
        return *asks, *runs, self.claimed, self.near, size


def clash(taken: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """True where host ports ("TCP/8080", with an address "TCP/8080/10.0.0.1") are taken: no address is all of them."""
    there: dict[tuple[str, str], set[str]] = {}
    for port in taken:
        protocol, number, address = (*port.split("/"), "")[:3]
        there.setdefault((protocol, number), set()).add(address)
    for port in wanted:
        protocol, number, address = (*port.split("/"), "")[:3]
        addresses = there.get((protocol, number), ())
        if addresses and (not address or address in addresses or "" in addresses):
            return True
    return False


def shape(**fields: object) -> PodShape:
    """A PodShape with its ``key`` worked out."""
    bare = PodShape(**fields)  # type: ignore[arg-type]
    digest = hashlib.blake2b(msgspec.json.encode(bare), digest_size=8).hexdigest()
    return msgspec.structs.replace(bare, key=digest)


class PodDemand(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that waits for a GPU."""

    uid: str  # Kubernetes' own.
    namespace: str  # Of the pod.
    name: str  # Of the pod.
    shape: PodShape  # All that decides where it can run.
    created_at: datetime  # When the pod was made.
    owner: str = ""  # Object that made it, as "Job/train".
    grace_s: Seconds = 30  # Seconds that it may take to stop.
    checkpoint_takes_s: Seconds = 0  # Seconds of a checkpoint that it is asked for; 0 where it cannot be asked.
    said: str = ""  # What the scheduler last said of it.
    scheduler: str = ""  # The scheduler that it names; empty for the cluster's default.
    never_preempts: bool = False  # Its priority class has preemptionPolicy Never.
    refused: tuple[str, ...] = ()  # Its claims that do not count, each a sentence.
    homes: tuple[str, ...] = ()  # Homes whose taint it tolerates, in its own order; its shape's tolerations have none.
    image: str = ""  # Of its first container that asks for GPUs, else of its first.

    @property
    def full_name(self) -> str:
        """As kubectl takes it: "namespace/name"."""
        return f"{self.namespace}/{self.name}"


IDLE_BLOCKED = "idle-blocked"
"""The code of a finding: pods without GPUs keep a node lit whose idle time is over."""

LAUNCH_OWED = "launch-owed"
"""The code of a finding: a pool's cloud could not launch what its size asks for, and may still."""


HOME_REFUSED = "home-refused"
"""The code of a finding: pods of a namespace may be given no toleration of a home."""

TAKES_HOMES = "takes-homes"
"""The code of a finding: a pod tolerates homes that nobody gave it."""

CLAIM_REFUSED = "claim-refused"
"""The code of a finding: a pod claims what its namespace may not."""
UNREADABLE = "bad-quantity"
"""The code of a finding: a pod's request cannot be read, and it waits in no group."""


class QueuedSet(msgspec.Struct, frozen=True, kw_only=True):
    """Pods alike of queued work: their uids as demands name them, and the keys of labels that they select by."""

    name: str
    uids: tuple[str, ...]
    selects: tuple[str, ...] = ()


class QueuedWork(msgspec.Struct, frozen=True, kw_only=True):
    """Work of a queue, by its object. ``version`` is that object's, as it was read."""

    namespace: str
    name: str
    version: str
    uid: str = ""


class Queued(QueuedWork, frozen=True, kw_only=True):
    """Work that has its quota and waits for our ``check``.

    ``turn`` names this reservation of its quota: work that is evicted and comes again has another. ``queue`` is the
    ClusterQueue whose quota it is. ``pinned``: labels of an earlier answer are still on the check.
    """

    check: str
    sets: tuple[QueuedSet, ...]
    turn: str = ""
    queue: str = ""
    pinned: bool = False


class Parked(QueuedWork, frozen=True, kw_only=True):
    """Work that we took out of its queue for want of money; ``why`` is what its owners were told.

    ``active``: a person has put it back since.
    """

    why: str
    active: bool = False


class Reserving(QueuedWork, frozen=True, kw_only=True):
    """Work that has its quota and our ``check`` on it, answered or not, until it ends or is evicted.

    ``owner`` is the object whose pods are its own, as "Job/train"; ``turn`` and ``queue`` as of queued work.
    """

    turn: str
    check: str = ""
    queue: str = ""
    owner: str = ""


class CheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a check. ``selectors`` are labels of nodes by pod set, for Ready alone.

    Retry names no time: Kueue gives the quota back at once without one, and holds it until then with one.
    """

    of: Queued
    state: Literal["Ready", "Retry", "Pending"]
    message: str
    selectors: dict[str, dict[str, str]] = {}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something a person must mend: no node would help. ``code`` is stable, ``message`` says what to do."""

    subject: str
    code: str
    message: str
    uid: str = ""
    team: str = ""
