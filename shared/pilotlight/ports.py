"""The outside world as the flows see it. Each port has one contract suite over all its adapters.

Errors are those of ``errors.py``: ``Retry`` kinds when asking again can help, ``Denied`` kinds when it cannot.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from pilotlight.facts.capacity import BoundPod, CapacityType
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.limits.isolated_objects import SetApart
from pilotlight.facts.messages import Alert, Outgoing
from pilotlight.facts.money.bill import Bill
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.facts.offers.catalog import DiskPrice, Price
from pilotlight.facts.offers.cloud_shop import Assortment, Size, SpotPrices
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.facts.workload import CheckAnswer
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.facts.utilisation.reclaim_steps import OwnerState, PodOwner
    from pilotlight.facts.utilisation.telemetry import Telemetry


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """The aware UTC moment."""
        ...

    def stopwatch(self) -> Callable[[], Seconds]:
        """A watch that begins now: how long it has run, also while this process or its machine stood still."""
        ...


class Cluster(Protocol):
    """A Kubernetes cluster."""

    def observe(self) -> ClusterView:
        """GPU pods that wait, nodes with what is on them, and pods that no node would help."""
        ...

    def cordon(self, node: str) -> None:
        """Put our taint on: nothing new binds. A cordon is never ours. Repeating it is harmless."""
        ...

    def uncordon(self, node: str) -> None:
        """Take our taint off. Somebody's cordon stays."""
        ...

    def close(self, node: str) -> None:
        """Put our placement taint on: pods that do not tolerate it bind elsewhere. Repeating it is harmless."""
        ...

    def open(self, node: str) -> None:
        """Take our placement taint off. What else keeps pods off stays."""
        ...

    def beat(self) -> None:
        """Say that we are awake: where this stays away, a watchman lifts all placement taints."""
        ...

    def bound(self, node: str) -> Sequence[BoundPod]:
        """The pods bound to a node now, read from the quorum, after a cordon."""
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
class PartlyRead(Cluster, Protocol):
    """A cluster whose objects may be too odd to be read."""

    def observe_without(self, apart: Sequence[SetApart]) -> ClusterView:
        """As ``observe``, and of these objects only the names, and where they are, are read."""
        ...


@runtime_checkable
class AdmittingCluster(Cluster, Protocol):
    """A cluster where queued work is let in by an answer of ours."""

    def answer_check(self, answer: CheckAnswer) -> None:
        """Write an answer, where the work is still as it was read. Raises ``Conflict`` where it is not."""
        ...


@runtime_checkable
class StoppableQueues(Cluster, Protocol):
    """A cluster whose queues can be stopped: "name" is a ClusterQueue, "namespace/name" a LocalQueue."""

    def stop_queue(self, queue: str, why: str) -> bool:
        """Let a queue admit no more, or with an empty ``why`` be as before; whether that changed anything.

        A queue that somebody else has stopped is left to them. Raises ``Conflict`` where it changed meanwhile,
        ``BadRequest`` where it is not there.
        """
        ...


@runtime_checkable
class RestingCluster(Cluster, Protocol):
    """A cluster whose owners of pods can be put to rest and woken: a Job is suspended, others scaled to zero."""

    def owner_of(self, namespace: str, pod: str, uid: str) -> "OwnerState | None":
        """Who makes a pod; None where it is gone, or whoever makes it is not ours to put to rest."""
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
    """What GPUs did."""

    def read(self, start_s: float, end_s: float, step_s: Seconds) -> "Telemetry":
        """Every pod's use on one grid; without any series it is absent. Raises kinds of ``Retry`` and ``Denied``."""
        ...


Gate = Callable[[], None]
"""Asked just before the first byte of a request that changes something; what it raises stops the request."""

CALL_S: Seconds = 20
"""A request that changes a cloud ends within so long, from connecting to the last byte of its answer."""


def OPEN() -> None:
    """The gate that lets every request through."""


class Pools(Protocol):
    """A cloud's node pools.

    ``grow`` and ``release`` first read what they must and connect, then call ``gate`` exactly once, just before the
    first byte of the one request that changes something, and never send that request again by themselves. Where nothing
    has to be changed, ``gate`` is not called; where it raises, nothing is sent and its error passes. After it,
    ``Unsure`` says that the change may have been made, every other error that it was not.
    """

    @property
    def cloud(self) -> str:
        """Whose instances these are, in the words of notices ("aws"); "world" where a world stands for any cloud, empty
        where nothing says whose."""
        ...

    def describe(self) -> Sequence[PoolState]:
        """Every pool with its desired size and the instances on their way."""
        ...

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """What the cloud says of one instance of a pool; None where there is no cloud to ask."""
        ...

    def grow(self, pool: str, to: int, zone: str = "", *, gate: Gate = OPEN, token: str = "") -> PoolState:
        """Raise the desired size to ``max(what it is, to)``: repeating it is harmless. Raises Denied or Retry.

        ``token`` names the request for good: a cloud that takes one never does the same twice.
        """
        ...

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Give one named instance back and lower the desired size by one. Gone already is no error."""
        ...


@runtime_checkable
class CountsOperations(Protocol):
    """A state that counts what is asked of it."""

    def operations(self) -> Mapping[str, int]:
        """How many of each kind since this was last asked."""
        ...


@runtime_checkable
class KnowsLooks(Protocol):
    """A state that knows beside its records when each cluster was last looked at: a restored backup does not bring that
    back."""

    def last_look(self, cluster: str) -> datetime | None:
        """When a look last began; None where that is not known."""
        ...

    def looked(self, cluster: str, at: datetime) -> None:
        """A look begins."""
        ...


@runtime_checkable
class KeepsLetters(Protocol):
    """An outbox that keeps the events that were refused where they can be counted."""

    def letters(self) -> int:
        """How many there are; one that came again is one."""
        ...


@runtime_checkable
class StandbyPools(Pools, Protocol):
    """A cloud whose nodes can be stopped: ``describe`` says of which pools, and ``grow`` starts stopped ones first."""

    def stop(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Stop one named instance and lower the desired size by one: it stands by, and ``release`` gives it back.

        Gone or stopped already is no error. Calls ``gate`` as ``release`` does.
        """
        ...


@runtime_checkable
class QuotaPools(Pools, Protocol):
    """A cloud whose account may run so much of a kind, which is read before something is bought."""

    def quotas(self, types: Mapping[str, tuple[str, CapacityType]]) -> Mapping[str, Quota]:
        """What counts against pools, by pool, of those that have a limit; ``types`` says what each is made of.

        Raises ``Denied`` or ``Retry``.
        """
        ...


class CloudAccount(NamedTuple):
    """What a cloud's folder is opened with. ``names`` are the cloud's own names of pools by the policy's, ``reserved``
    the instance types of those whose capacity is paid for. ``role`` is whom to act as, where that is another account's.

    ``token`` gives the secret that the settings name, and raises ``BadInput`` where there is none.
    """

    names: Mapping[str, str]
    clock: Clock
    token: Callable[[], str]
    environ: Mapping[str, str]
    reserved: Mapping[str, str] = {}
    role: str = ""


class Cloud(Protocol):
    """A cloud's folder, ``adapters/pools/<cloud>``: the address it is named by, and what it opens, calling nothing."""

    ADDRESS: str

    def open_pools(self, where: str, account: CloudAccount) -> Pools | None:
        """The node pools of one cluster; None where ``where`` is no address of it."""
        ...

    def open_shop(self, where: str, account: CloudAccount) -> "Shop":
        """What its account may rent in the region that ``where`` names."""
        ...


AskPrices = Callable[[Sequence[str]], Mapping[str, Mapping[CapacityType, Price]]]
"""What a cloud itself tells of the prices of these types now, as ``Shop.prices``."""


AskSpotPrices = Callable[[Sequence[str], datetime], Mapping[str, SpotPrices]]
"""What spot of these types has cost by zone since then, as ``SpotShop.spot_prices``."""


class Shop(Protocol):
    """What a cloud's account may rent. Raises ``Denied`` or ``Retry``."""

    def sizes(self) -> Sequence[Size]:
        """The instance types of its region."""
        ...

    def prices(self, names: Sequence[str]) -> Mapping[str, Mapping[CapacityType, Price]]:
        """What the cloud itself tells of the prices of these sizes now; nothing of what it does not tell."""
        ...

    def assortment(self, names: Sequence[str] = ()) -> Assortment:
        """Those of these ``names``, or all, with what the account's quota leaves of them."""
        ...


@runtime_checkable
class SpotShop(Shop, Protocol):
    """A cloud that tells what spot has cost, by zone."""

    def spot_prices(self, names: Sequence[str], since: datetime) -> Mapping[str, SpotPrices]:
        """Of these sizes, by "size/zone"; nothing of what it does not tell. Raises ``Denied`` or ``Retry``."""
        ...


@runtime_checkable
class DiskShop(Shop, Protocol):
    """A cloud that tells what its disks cost."""

    def disk_prices(self, names: Sequence[str]) -> Mapping[str, DiskPrice]:
        """Of these kinds of disk; nothing of what it does not tell. Raises ``Denied`` or ``Retry``."""
        ...


class Bills(Protocol):
    """What a cloud has billed."""

    def read(self, start: datetime, end: datetime) -> Bill:
        """What is billed so far for usage in a half-open period, by day, with what could not be counted.

        Raises ``Retry`` kinds when later may work, ``Denied`` or ``BadInput`` when it cannot be read.
        """
        ...


class Queues(Protocol):
    """Queues of work, by the names that the policy gives them."""

    def length(self, name: str) -> float:
        """Messages that wait or are worked on, now.

        Raises ``Retry`` kinds when later may work, ``Denied`` or ``BadInput`` when it cannot be read.
        """
        ...


class Stored(NamedTuple):
    """A value and the version that a compare-and-set names."""

    value: bytes
    version: int


ABSENT = 0
"""As ``if_version``: only when there is no such key."""


LARGEST = 300 * 1024
"""Bytes of the largest value: below what every backend takes (DynamoDB items end at 400 KB)."""


class Page(NamedTuple):
    """A part of a scan: keys in order, and the key to go on after, or empty at the end."""

    items: Sequence[tuple[str, Stored]]
    next: str


class State(Protocol):
    """A small key-value store with compare-and-set. Keys are paths with ``/``; values up to 300 KB.

    An expired key is absent, even where the backend has not deleted it yet. That is judged by the store's own time.
    """

    def now(self) -> datetime:
        """The store's own time, the same for all its workers whatever their clocks say."""
        ...

    def get(self, key: str) -> Stored | None:
        """The value with its version, or None."""
        ...

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Write, and return the new version.

        ``if_version`` None writes whatever is there, ``ABSENT`` only where nothing is, else only over that version;
        otherwise raises ``Conflict``. Larger than 300 KB raises ``BadInput``. No ``ttl_s`` keeps it for ever.
        """
        ...

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """Delete. Absent is no error without ``if_version``; with it, another version raises ``Conflict``."""
        ...

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """Live keys that begin with ``prefix`` and are greater than ``after``, in order, at most ``limit``."""
        ...


class Outbox(Protocol):
    """Where messages go out. Returns only when they are confirmed."""

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """Send each at least once under its id."""
        ...


class AlertChannel(Protocol):
    """A place where people read alerts."""

    def deliver(self, alert: Alert) -> str:
        """Show one alert, in one attempt; the provider's name for it as proof, or empty.

        Raises ``Unsure`` where it may have been shown, ``Retry`` when later may work, ``Denied`` or ``Reject`` when it
        never will. No error names a secret.
        """
        ...


@runtime_checkable
class ThreadedChannel(AlertChannel, Protocol):
    """One where what follows on an alert can be shown with it."""

    def follow(self, alert: Alert, receipt: str) -> str:
        """The same as ``deliver``, beside what was shown under that proof."""
        ...
