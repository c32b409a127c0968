"""A Kubernetes cluster as the flows see it, with the telemetry of its GPUs and the queues of work for it."""

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pilotlight.units import Seconds

if TYPE_CHECKING:
    from datetime import datetime

    from pilotlight.facts.capacity import BoundPod, ClusterView
    from pilotlight.facts.limits.isolated_objects import SetApart
    from pilotlight.facts.money.gates import GateState
    from pilotlight.facts.nodes.first_work import Pull
    from pilotlight.facts.utilisation.reclaim_steps import OwnerState, PodOwner
    from pilotlight.facts.utilisation.telemetry import Telemetry
    from pilotlight.facts.workload import CheckAnswer, QueuedWork


class Cluster(Protocol):
    """A Kubernetes cluster."""

    def observe(self) -> "ClusterView":
        """GPU pods that wait, nodes with what is on them, and pods that no node would help."""
        ...

    def cordon(self, node: str, by: str = "") -> None:
        """Put our taint on: nothing new binds. A cordon is never ours. Repeating it is harmless.

        ``by`` is the decision that gives the node back: noted in the same write, it stays where a person opens it.
        """
        ...

    def uncordon(self, node: str) -> None:
        """Take our taint off with what is noted beside it; one that a person opened stays as it is, and so does a
        cordon."""
        ...

    def forget_opened(self, node: str) -> None:
        """Take off what is left of our mark on a node that a person opened."""
        ...

    def open(self, node: str) -> None:
        """Take our home taint off. What else keeps pods off stays."""
        ...

    def name_home(self, node: str, home: str) -> None:
        """Give a node whose home taint is ``NEW_HOME`` this home; one that has a home keeps it."""
        ...

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        """Add the toleration of a home to a waiting pod. Gone, replaced by another of its name, or tolerant of it
        already is no error.
        """
        ...

    def beat(self) -> None:
        """Say that we are awake: where this stays away, a watchman takes all home taints off."""
        ...

    def bound_pods(self, node: str) -> "Sequence[BoundPod]":
        """The pods bound to a node now, read from the quorum, after a cordon. Raises ``Denied`` where a person has
        opened it while it was being given back."""
        ...

    def drain(self, node: str) -> None:
        """Evict what is left on a cordoned node, honouring PodDisruptionBudgets."""
        ...

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        """Evict one pod, within ``grace_s`` or its own grace. Gone already, or replaced by another of its name, is no
        error.

        Raises ``Busy`` while a PodDisruptionBudget does not allow it.
        """
        ...

    def delete(self, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
        """Delete one pod within its grace, whatever a PodDisruptionBudget says: for the end of what a hard cap holds.

        Gone already, or replaced by another of its name, is no error.
        """
        ...

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        """An Event on a pod, for its owner; on a node where ``namespace`` is empty. One that is gone is no error.

        ``change`` is what it is about: the same reason and change make no second Event on one pod or node. Empty, it
        is the message.
        """
        ...


@runtime_checkable
class PartlyRead(Protocol):
    """A cluster whose objects may be too odd to be read."""

    def observe_without(self, apart: "Sequence[SetApart]") -> "ClusterView":
        """As ``observe``, and of these objects only the names, and where they are, are read."""
        ...


@runtime_checkable
class ScheduledCluster(Protocol):
    """A cluster whose scheduler shows that it lives."""

    def scheduler_beat(self) -> "datetime | None":
        """When it last did, by its Lease; None where that is not there, or may not be read."""
        ...


@runtime_checkable
class PullingCluster(Protocol):
    """A cluster whose nodes tell of the images that they pull."""

    def pulls(self, pods: "Sequence[BoundPod]") -> "Mapping[str, Pull]":
        """What became of the pulls for these pods, by uid; without those of whom nothing is told."""
        ...


@runtime_checkable
class WideCluster(Protocol):
    """A cluster that takes several writes at once."""

    at_once: int


@runtime_checkable
class HomingCluster(Protocol):
    """A cluster that can say without a whole look which nodes wait for their homes."""

    def without_home(self) -> "Set[str]":
        """Names of the nodes that still have the home taint they were born with."""
        ...


@runtime_checkable
class AdmittingCluster(Protocol):
    """A cluster where queued work is let in by an answer of ours."""

    def answer_check(self, answer: "CheckAnswer") -> None:
        """Write an answer, where the work is still as it was read. Raises ``Conflict`` where it is not."""
        ...

    def lets_nothing_pass(self, queue: str) -> bool:
        """True for a queue whose head keeps all that is behind it waiting."""
        ...

    def park(self, work: "QueuedWork", why: str) -> None:
        """Take work out of its queue and note ``why`` on it; with an empty one put it back. Raises ``Conflict`` where
        it is not as it was read."""
        ...

    def tell_of_work(self, work: "QueuedWork", reason: str, message: str, change: str) -> None:
        """Tell its owners, once a ``reason`` and ``change`` however often it is asked for."""
        ...


@runtime_checkable
class StoppableQueues(Protocol):
    """A cluster whose queues can be stopped: "name" is a ClusterQueue, "namespace/name" a LocalQueue."""

    def stop_queue(self, queue: str, why: str) -> bool:
        """Let a queue admit no more, or with an empty ``why`` be as before; whether that changed anything.

        A queue that somebody else has stopped is left to them. Raises ``Conflict`` where it changed meanwhile,
        ``BadRequest`` where it is not there.
        """
        ...


@runtime_checkable
class GatedCluster(Protocol):
    """A cluster where Karpenter buys: NodePools whose limit of GPUs can be set."""

    def read_gates(self, nodepools: "Sequence[str]") -> "Sequence[GateState]":
        """These NodePools and what they asked for, in this order. Raises kinds of ``Denied`` and ``Retry``."""
        ...

    def limit_gate(self, gate: "GateState", gpus: int) -> None:
        """Set its limit, over the version that was read, and keep on it what stood before ours.

        Raises ``Conflict`` where it changed meanwhile.
        """
        ...


@runtime_checkable
class RestingCluster(Protocol):
    """A cluster whose owners of pods can be put to rest and woken: a Job is suspended, others scaled to zero."""

    def owner_of(self, namespace: str, pod: str, uid: str) -> "OwnerState | None":
        """Owner that makes a pod; None where it is gone, or its owner is not ours to put to rest."""
        ...

    def owner_now(self, owner: "PodOwner") -> "OwnerState | None":
        """An owner as it is; None where it is gone."""
        ...

    def rest(self, owner: "PodOwner", count: int) -> None:
        """Put to rest an owner that asks for ``count`` pods, and keep that count on it. One that rests is no error.

        Raises ``Conflict`` where it asks for another count, ``BadRequest`` where it is gone.
        """
        ...

    def wake(self, owner: "PodOwner") -> int:
        """Give an owner the count that it had when we put it to rest; what it asks for then. Repeating it is harmless.

        Raises ``BadRequest`` where it is gone, or rests and was never put to rest by us.
        """
        ...


class GpuTelemetry(Protocol):
    """Telemetry of GPUs."""

    def read(self, start_s: float, end_s: float, step_s: Seconds) -> "Telemetry":
        """Every pod's use on one grid; without any series it is absent. Raises kinds of ``Retry`` and ``Denied``."""
        ...

    def past(self, end_s: float) -> "Telemetry":
        """Every pod's activity in the week up to then: the most of each step of up to an hour. Raises as ``read``."""
        ...


class Queues(Protocol):
    """Queues of work, by the names that the policy gives them."""

    def length(self, name: str) -> float:
        """Messages that wait or are worked on, now.

        Raises ``Retry`` kinds when later may work, ``Denied`` or ``BadInput`` when it cannot be read.
        """
        ...
