"""Dependencies of a flow: one cluster's ports and policy."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from pilotlight.errors import Denied, Retry
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
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
