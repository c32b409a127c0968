"""The functions: what each is given, which messages it takes, and the flow that it runs."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec

from pilotlight.codec.events import Ignored
from pilotlight.errors import BadEvent, Failed, Reject
from pilotlight.facts.messages import (
    Alert,
    BillExported,
    BudgetNotice,
    CapacityFailed,
    InterruptionNotice,
    Message,
    NodeJoined,
    PodPending,
    QuotaReserved,
    Tick,
)
from pilotlight.flow.answer import Answer
from pilotlight.settings import Settings
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.doorway.blame import Suspects
    from pilotlight.facts.policy import Policy
    from pilotlight.flow.delivery.desk import Desk
    from pilotlight.flow.deps import Deps
    from pilotlight.ports.clouds import Bills
    from pilotlight.ports.delivery import AlertChannel, Outbox
    from pilotlight.ports.state import Clock, State

T = TypeVar("T")

Function = Literal[
    "pod_pending",
    "kueue_admission",
    "capacity_reconcile",
    "spot_interruption",
    "billing_tick",
    "billing_import",
    "alert_fanout",
]


class House(Protocol):
    """A deployment as the door sees it; ``wiring.App`` is one."""

    settings: Settings

    @property
    def clusters(self) -> Sequence[str]:
        """The clusters it serves, by name."""
        ...

    def for_cluster(self, cluster: str) -> "House":
        """The deployment of one of them alone."""
        ...

    @property
    def late(self) -> "Deps":
        """The one cluster's ports and policy, opened as they are used; of many, only ``for_cluster`` has them."""
        ...

    @property
    def policy(self) -> "Policy":
        """The policy; its alerts are those of every cluster."""
        ...

    @property
    def state(self) -> "State":
        """The state that survives between events, of every cluster."""
        ...

    @property
    def alerts(self) -> "State":
        """State of alerts on their way: the clusters' own, or another."""
        ...

    @property
    def outbox(self) -> "Outbox":
        """Where messages go out."""
        ...

    @property
    def clock(self) -> "Clock":
        """The time."""
        ...

    @property
    def channels(self) -> "Mapping[str, AlertChannel]":
        """Where alerts go, by the policy's names."""
        ...


class LateDeps:
    """In the place of ``Deps``, with only these four at once; with the first other thing that is used, all are opened.
    The bill is opened alone: who reads it reaches no cluster.

    An event that is known needs no more: it costs neither policy, catalogue, cluster nor cloud. A deployment that is
    set up wrongly raises ``Failed``: that is no fault of the event.
    """

    def __init__(
        self,
        open: "Callable[[], Deps]",
        bills: "Callable[[], Bills | None]",
        *,
        name: str,
        state: "State",
        outbox: "Outbox",
        clock: "Clock",
    ) -> None:
        self.name, self.state, self.outbox, self.clock = name, state, outbox, clock
        self._open, self._bills = open, bills
        self._opened: Deps | None = None

    def now(self) -> datetime:
        """As ``Deps.now``."""
        return self.state.now()

    @property
    def whole(self) -> "Deps":
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


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a function: its body and headers, and the deployment that it came to.

    ``watch_s``: so long a tick may wait for nodes that join; 0 where somebody waits for its answer.
    """

    house: House
    function: Function
    body: bytes
    headers: Mapping[str, str]
    dryrun: bool
    watch_s: Seconds = 0.0
    suspects: "Suspects | None" = None

    @property
    def deps(self) -> "Deps":
        """The ports and policy of the one cluster it is about, with what is set apart of it."""
        return self.house.late if self.suspects is None else self.suspects.deps(self.house.late)


RECEIVES: dict[Function, tuple[type[msgspec.Struct], ...]] = {
    "pod_pending": (PodPending, NodeJoined),
    "kueue_admission": (QuotaReserved,),
    "capacity_reconcile": (Tick, CapacityFailed),
    "spot_interruption": (InterruptionNotice, Tick),
    "billing_tick": (Tick, BudgetNotice),
    "billing_import": (Tick, BillExported),
    "alert_fanout": (Alert, Tick),
}
"""The messages each function takes; of ticks, those of ``TICKS``."""

TICKS: dict[str, str] = {
    "reconcile": "capacity_reconcile",
    "billing": "billing_tick",
    "bills": "billing_import",
    "rescue": "spot_interruption",
    "alerts": "alert_fanout",
}
"""The function for each thing that a tick is for."""


def takes(function: Function, message: Message | Ignored) -> bool:
    """True where a message is for a function."""
    ticks_here = not isinstance(message, Tick) or TICKS[message.what] == function
    return ticks_here and isinstance(message, RECEIVES[function])


def run(request: Request, message: Message) -> Answer:
    """The function's flow. Imported when it runs: a function pays at its start only for its own."""
    match request.function, message:
        case ("pod_pending", (PodPending() | NodeJoined()) as hint) | ("kueue_admission", QuotaReserved() as hint):
            from pilotlight.flow.provision import provision

            return provision(request.deps, hint, dry_run=request.dryrun)
        case "capacity_reconcile", CapacityFailed():
            from pilotlight.flow.refusal import refusal

            return refusal(request.deps, message, dry_run=request.dryrun)
        case "capacity_reconcile", Tick(what="reconcile"):
            from pilotlight.flow.reconcile import reconcile

            ran = request.house.clock.stopwatch()
            answer = reconcile(request.deps, message, dry_run=request.dryrun)
            if request.dryrun or request.watch_s <= 0 or not request.deps.policy.homed:
                return answer
            from pilotlight.flow.homes_watch import watch

            return watch(request.deps, message, answer, request.watch_s - ran())
        case "spot_interruption", InterruptionNotice():
            from pilotlight.flow.interruption.interrupt import interrupt

            return interrupt(request.deps, message, dry_run=request.dryrun)
        case "spot_interruption", Tick(what="rescue"):
            from pilotlight.flow.interruption.drain_all import go_on

            return go_on(request.deps, dry_run=request.dryrun)
        case "billing_tick", BudgetNotice() if not request.dryrun:
            from pilotlight.flow.billing.cloud_budget import cloud_budget

            return cloud_budget(request.deps, message)
        case "billing_import", Tick(what="bills") | BillExported():
            from pilotlight.flow.billing.billing_import import billing_import

            return billing_import(request.deps, message, dry_run=request.dryrun)
        case "billing_tick", Tick(what="billing") | BudgetNotice():
            return _count_money(request, message)
        case "alert_fanout", Alert():
            return _alert(request, message)
        case "alert_fanout", Tick(what="alerts"):
            from pilotlight.flow.delivery.flush import flush

            return flush(_desk(request.house), dry_run=request.dryrun)
    raise BadEvent(_misrouted(request.function, message), "type")


def _count_money(request: Request, message: Tick | BudgetNotice) -> Answer:
    from pilotlight.flow.billing.billing_tick import billing

    answer = billing(request.deps, message, dry_run=request.dryrun)
    if request.house.settings.otlp and isinstance(message, Tick) and not request.dryrun:
        from pilotlight.doorway.push import push

        push(request.deps, request.house.settings, request.house.alerts)
    return answer


def _alert(request: Request, alert: Alert) -> Answer:
    from pilotlight.facts.nodes.gpu_faults import ALERTS
    from pilotlight.flow.delivery.alert_dedup import hear, was_heard

    if alert.kind in ALERTS and not request.dryrun:
        from pilotlight.flow.observe.gpu_health import keep

        keep(request.house.alerts, alert)
    if was_heard(request.house.alerts, alert):
        return Answer(decision="", did=(), why="this alert was taken in before")
    from pilotlight.flow.delivery.fan_out import fan_out

    answer = fan_out(_desk(request.house), alert, dry_run=request.dryrun)
    if not request.dryrun:
        hear(request.house.alerts, alert)
    return answer


def _desk(house: House) -> "Desk":
    """Raises ``Failed`` for a deployment that is set up wrongly: that is no fault of the alert."""
    from pilotlight.flow.delivery.desk import Desk

    try:
        channels, policy = house.channels, house.policy.alerts
    except Reject as error:
        raise Failed(f"not set up: {error}") from error
    return Desk(
        channels=channels,
        policy=policy,
        state=house.alerts,
        outbox=house.outbox,
        link_key=house.settings.link_key,
    )


def _misrouted(function: Function, message: Message) -> str:
    owners = [TICKS[message.what]] if isinstance(message, Tick) else [name for name in RECEIVES if takes(name, message)]
    what = f"a Tick for {message.what}" if isinstance(message, Tick) else type(message).__name__
    return f"{function} does not take {what}; send it to {' or '.join(owners) or 'nobody: it is ours'}"
