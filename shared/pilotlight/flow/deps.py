"""Dependencies of a flow: one cluster's ports and policy; and the answer that a flow gives."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec

from pilotlight.errors import Denied, Failed, Reject, Retry
from pilotlight.facts.capacity import Offering
from pilotlight.facts.labels import WARNINGS
from pilotlight.facts.limits.isolated_objects import SetApart, SetApartKind
from pilotlight.facts.modes import Mode
from pilotlight.facts.policy import Policy
from pilotlight.ports.cluster import WideCluster
from pilotlight.ports.state import Clock, State
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.facts.capacity import ClusterView
    from pilotlight.facts.decisions import Plan
    from pilotlight.facts.limits.checks import Token
    from pilotlight.ports.clouds import AskPrices, AskSpotPrices, Bills, Pools
    from pilotlight.ports.cluster import Cluster, GpuTelemetry, Queues
    from pilotlight.ports.delivery import Outbox

T = TypeVar("T")

_log = logging.getLogger("pilotlight.events")


class HasBudgets(Protocol):
    """The parts of ``Deps`` that reading budgets takes: name, state, and the policy with its budgets."""

    @property
    def name(self) -> str:
        """The cluster's, as in keys."""
        ...

    @property
    def state(self) -> State:
        """The store of what survives between events."""
        ...

    @property
    def policy(self) -> Policy:
        """The budgets are in it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """One cluster's ports, and the policy with the offerings it and the catalogue make."""

    name: str
    """The cluster's, as in keys and messages."""
    cluster: "Cluster"
    """The cluster's API: its look, and effects on nodes and pods."""
    pools: "Pools"
    """Its node pools, at the cloud that they are of."""
    state: State
    """The store of what survives between events."""
    outbox: "Outbox"
    """Messages go out by it: alerts, changes of capacity, ticks."""
    clock: Clock
    """This worker's own time; records and decisions go by ``now``, the store's."""
    policy: Policy
    """The deployment's policy, as it is read at this event."""
    offerings: tuple[Offering, ...]
    """The policy's pools with types and prices of the catalogue."""
    throughput: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Relative speed, by workload class and then by GPU model."""
    mode: Mode = "advise"
    """The mode of pools that name none."""
    advice: str = ""
    """Why the mode is less than was asked for; else empty."""
    bills: "Bills | None" = None
    """The cloud's bill, where one is set up."""
    queues: "Queues | None" = None
    """Lengths of the policy's queues, where it has some."""
    alerts: State | None = None
    """The store of alerts on their way, where that is not ``state``."""
    credential: "Callable[[], Token | None]" = lambda: None
    """What the token for the cluster says of itself."""
    pause: "Callable[[Seconds], None]" = lambda _: None
    """Lets a burst gather; where time is led by hand nobody waits."""
    live_prices: "AskPrices | None" = None
    """Asks the cloud for the prices of instance types, where it tells any."""
    spot_prices: "AskSpotPrices | None" = None
    """Asks the cloud for spot's prices by zone, where it tells any."""
    telemetry: "GpuTelemetry | None" = None
    """What GPUs did, where telemetry is set up."""
    apart: tuple[SetApart, ...] = ()
    """Objects that are not judged at this look, because judging them raised what nobody foresaw."""

    def observe(self) -> "ClusterView":
        """One read of the cluster. Objects that are set ``apart`` count as used, and are kept."""
        if not self.apart:
            return self.cluster.observe()
        from pilotlight.decide.limits.set_apart import without_judged
        from pilotlight.ports.cluster import PartlyRead

        partly = self.cluster
        view = partly.observe_without(self.apart) if isinstance(partly, PartlyRead) else partly.observe()
        return without_judged(view, self.apart)

    def set_apart(self, kind: SetApartKind) -> frozenset[str]:
        """The names of what is set apart of a kind."""
        return frozenset([one.name for one in self.apart if one.kind == kind])

    def known_as(self, node: str) -> str:
        """The name that cluster and records know a node by: one that is set apart may have another in decisions."""
        if not self.apart:
            return node
        from pilotlight.decide.limits.set_apart import known_as

        return known_as(node, self.apart)

    @property
    def whole(self) -> "Deps":
        """All of them, opened: these are."""
        return self

    def now(self) -> datetime:
        """The store's own time: all workers of a deployment agree on it, whatever their clocks say."""
        return self.state.now()

    @property
    def has_watchmen(self) -> bool:
        """True where somebody listens for us: who opens what we closed, or hands our pools back, once we are silent."""
        rules = self.policy.pools.values()
        return bool(self.policy.homed) or any(pool.on_silence == "hand-back" for pool in rules)

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> bool:
        """An Event as the policy has them, where any pool may be acted on. One that cannot be written fails nothing:
        False, and a line in the log."""
        quiet = self.policy.events == "none" or (self.policy.events == "warnings" and reason not in WARNINGS)
        if quiet or not self.acts:
            return True
        try:
            self.cluster.tell(namespace, name, reason, message, change)
        except (Denied, Retry) as error:
            _log.warning("no Event", extra={"data": {"about": f"{namespace}/{name}", "why": str(error)}})
            return False
        return True

    def write_in_rows(
        self, calls: Iterable[Callable[[], T]], before: Callable[[], None] = lambda: None
    ) -> Iterator[list[T]]:
        """What writes to the cluster give, as many at once as it takes; ``before`` is called before each row."""
        at_once = self.cluster.at_once if isinstance(self.cluster, WideCluster) else 1
        if at_once == 1:
            for call in calls:
                before()
                yield [call()]
            return
        from pilotlight.flow.abreast import rows, together

        for row in rows(calls, at_once):
            before()
            yield together(row)

    @property
    def acts(self) -> bool:
        """True where any pool may be acted on."""
        return any(self.mode_of(pool) in ("scale-up", "act") for pool in self.policy.pools)

    def mode_of(self, pool: str) -> Mode:
        """The mode of a pool: its own, else the deployment's."""
        rules = self.policy.pools.get(pool)
        return (rules.acts_as if rules is not None else None) or self.mode


class LateDeps:
    """In the place of ``Deps``, with only these four at once; with the first other thing that is used, all are opened.
    The bill is opened alone: who reads it reaches no cluster.

    An event that is known needs no more: it costs neither policy, catalogue, cluster nor cloud. A deployment that is
    set up wrongly raises ``Failed``: that is no fault of the event.
    """

    def __init__(
        self,
        open: Callable[[], Deps],
        bills: "Callable[[], Bills | None]",
        *,
        name: str,
        state: State,
        outbox: "Outbox",
        clock: Clock,
    ) -> None:
        self.name, self.state, self.outbox, self.clock = name, state, outbox, clock
        self._open, self._bills = open, bills
        self._opened: Deps | None = None

    def now(self) -> datetime:
        """As ``Deps.now``."""
        return self.state.now()

    @property
    def whole(self) -> Deps:
        """All of them, opened."""
        if self._opened is None:
            self._opened = _set_up(self._open)
        return self._opened

    @cached_property
    def bills(self) -> "Bills | None":
        """The cloud's bill, where one is set up; opened once."""
        return self._opened.bills if self._opened is not None else _set_up(self._bills)

    def __getattr__(self, name: str) -> Any:
        """Whatever else ``Deps`` has."""
        return getattr(self.whole, name)


def _set_up(open: Callable[[], T]) -> T:
    try:
        return open()
    except Reject as error:
        raise Failed(f"not set up: {error}") from error


Outcome = Literal["done", "seen", "stopped", "nothing", "at-work", "known", "dry-run"]
"""``done``: a decision was recorded. ``seen``: there is demand, and nothing new to do or tell of it. ``stopped``:
brakes hold all that would be done. ``nothing``: there was nothing to do. ``at-work``: another delivery looks after this
one. ``known``: this event was handled before, or is of no use.
"""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A function's answer: the decision's id (empty when none was needed), what it did, and why in one line.

    ``outcome`` is for code, ``why`` for people. ``released`` are the nodes that were given back. ``plan`` is there on a
    dry run. ``look_again_at`` is when a look could change something without a new event.
    """

    decision: str
    did: tuple[str, ...]
    why: str
    outcome: Outcome = "done"
    released: tuple[str, ...] = ()
    look_again_at: datetime | None = None
    plan: "Plan | None" = None


def join_answers(first: Answer | None, second: Answer) -> Answer:
    """Two looks in one answer."""
    if first is None or first.outcome != "done":
        return second
    if second.outcome != "done":
        return msgspec.structs.replace(first, did=first.did + second.did, look_again_at=second.look_again_at)
    return msgspec.structs.replace(second, did=first.did + second.did, released=first.released + second.released)
