"""A cloud as the flows see it: its node pools, its account's quotas, what it rents at which prices, and its bills."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, runtime_checkable

from pilotlight.ports.state import Clock
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.facts.capacity import CapacityType
    from pilotlight.facts.money.bill import Bill
    from pilotlight.facts.money.bill_files import BillFile, BillListing
    from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
    from pilotlight.facts.offers.catalog import DiskPrice
    from pilotlight.facts.offers.cloud_shop import Assortment, Size, SpotPrices, ToldPrices
    from pilotlight.facts.offers.pool_quota import Quota


T = TypeVar("T")
D = TypeVar("D", covariant=True)

Gate = Callable[[], None]
"""Asked just before the first byte of a request that changes something; what it raises stops the request."""

SizeGate = Callable[[int], None]
"""A gate that is told the size which the request asks for."""

UNBOUNDED = sys.maxsize

CALL_S: Seconds = 20
"""A request that changes a cloud ends within so long, from connecting to the last byte of its answer."""


def OPEN(size: int = 0) -> None:
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

    def describe(self) -> "Sequence[PoolState]":
        """Every pool with its desired size and the instances on their way."""
        ...

    def instance(self, pool: str, instance: str) -> "InstanceState | None":
        """One instance of a pool as its cloud tells it; None where there is no cloud to ask."""
        ...

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> "PoolState":
        """Raise the desired size to ``max(what it is, to)``, by ``most`` nodes at most: repeating it is harmless, and
        what left the pool since the look is not made up for. Raises Denied or Retry.

        ``gate`` is told the size that is asked for. ``token`` names the request for good: a cloud that takes one never
        does the same twice.
        """
        ...

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Give one named instance back and lower the desired size by one. Gone already is no error."""
        ...


@runtime_checkable
class StandbyPools(Protocol):
    """A cloud whose nodes can be stopped: ``describe`` says of which pools, and ``grow`` starts stopped ones first."""

    def stop(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Stop one named instance and lower the desired size by one: it stands by, and ``release`` gives it back.

        Gone or stopped already is no error. Calls ``gate`` as ``release`` does.
        """
        ...


@runtime_checkable
class NamingPools(Protocol):
    """A cloud in which nodes, or the request for them, are named by the ``token`` of ``grow``."""

    def came(self, pool: str, to: int, token: str) -> int | None:
        """Nodes that a purchase to a size brought, as far as they are there, boot or wait; None where that cannot be
        read. Whatever else came or went in the pool meanwhile is not counted. Raises ``Denied`` or ``Retry``.
        """
        ...


@runtime_checkable
class QuotaPools(Protocol):
    """A cloud whose account may run so much of a kind, which is read before something is bought."""

    def quotas(self, types: "Mapping[str, tuple[str, CapacityType]]") -> "Mapping[str, Quota]":
        """Quotas that pools count against, by pool, of those that have a limit; ``types`` says what each is made of.

        Raises ``Denied`` or ``Retry``.
        """
        ...


class Decodes(Protocol[D]):
    """Makes a value of an answer's body."""

    def decode(self, body: bytes, /) -> D: ...


class KubernetesApi(Protocol):
    """The API server of a cluster, as far as pools that are asked for by objects in it need one."""

    def get(self, path: str, decoder: Decodes[T], **query: str) -> T:
        """Read."""
        ...

    def change(self, method: str, path: str, body: object, gate: Gate) -> bool:
        """Change, once, when ``gate`` lets it; false where what is there stands against it."""
        ...


class CloudAccount(NamedTuple):
    """Account that a cloud is opened with. ``names`` are the cloud's own names of pools by the policy's, ``reserved``
    the instance types of those whose capacity is paid for. ``role`` is whom to act as, where that is another account's.
    ``api`` is the cluster's API server, None where there is none.

    ``token`` gives the secret that the settings name, and raises ``BadInput`` where there is none.
    """

    names: Mapping[str, str]
    clock: Clock
    token: Callable[[], str]
    environ: Mapping[str, str]
    reserved: Mapping[str, str] = {}
    role: str = ""
    api: KubernetesApi | None = None


class Cloud(Protocol):
    """A cloud's folder, ``adapters/pools/<cloud>``: the address it is named by, and what it opens, calling nothing."""

    ADDRESS: str

    def open_pools(self, where: str, account: CloudAccount) -> Pools | None:
        """The node pools of one cluster; None where ``where`` is no address of it."""
        ...

    def open_shop(self, where: str, account: CloudAccount) -> "Shop":
        """The shop of its account in the region that ``where`` names."""
        ...


AskPrices = Callable[[Sequence[str]], "ToldPrices"]
"""What a cloud itself tells of the prices of these types now, as ``Shop.prices``."""

AskSpotPrices = Callable[[Sequence[str], datetime], "Mapping[str, SpotPrices]"]
"""What spot of these types has cost by zone since then, as ``SpotShop.spot_prices``."""


class Shop(Protocol):
    """Instance types that a cloud's account may rent. Raises ``Denied`` or ``Retry``."""

    def sizes(self) -> "Sequence[Size]":
        """The instance types of its region."""
        ...

    def prices(self, names: Sequence[str]) -> "ToldPrices":
        """Prices of these sizes now, as the cloud itself tells them; nothing of what it does not tell, but why."""
        ...

    def assortment(self, names: Sequence[str] = ()) -> "Assortment":
        """Those of these ``names``, or all, with what the account's quota leaves of them."""
        ...


@runtime_checkable
class SpotShop(Protocol):
    """A cloud that tells what spot has cost, by zone."""

    def spot_prices(self, names: Sequence[str], since: datetime) -> "Mapping[str, SpotPrices]":
        """Of these sizes, by "size/zone"; nothing of what it does not tell. Raises ``Denied`` or ``Retry``."""
        ...


@runtime_checkable
class OddsShop(Protocol):
    """A cloud that tells by zone what its spot costs, and how much of it is taken."""

    def with_odds(self, told: "ToldPrices", places: Sequence[str]) -> "ToldPrices":
        """What was told, with those of these ``places``, each "size/zone". Raises ``Denied`` or ``Retry``."""
        ...


@runtime_checkable
class DiskShop(Protocol):
    """A cloud that tells what its disks cost."""

    def disk_prices(self, names: Sequence[str]) -> "Mapping[str, DiskPrice]":
        """Of these kinds of disk; nothing of what it does not tell. Raises ``Denied`` or ``Retry``."""
        ...


class Bills(Protocol):
    """Bills of a cloud."""

    def read(self, start: datetime, end: datetime) -> "Bill":
        """Bill so far for usage in a half-open period, by day, with what could not be counted.

        Raises ``Retry`` kinds when later may work, ``Denied`` or ``BadInput`` when it cannot be read.
        """
        ...


@runtime_checkable
class FiledBills(Protocol):
    """A bill in files: each is read by itself, and it can be told without a read whether they are others.

    Every method raises as ``read`` does.
    """

    def files(self) -> "BillListing":
        """The files that lie there."""
        ...

    def read_file(
        self,
        listing: "BillListing",
        group: Sequence[str],
        read: "Sequence[BillFile]",
        start: datetime,
        end: datetime,
        nodes: Sequence[str] | None = None,
    ) -> "BillFile":
        """What one group of files comes to from ``start`` to ``end``, after those that are ``read``. Of machines those
        in ``nodes`` are told by name, or all."""
        ...

    def join(self, listing: "BillListing", files: "Sequence[BillFile]", end: datetime) -> "Bill":
        """The bill of all the files of a listing."""
        ...
