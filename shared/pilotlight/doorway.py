"""The front door: a request's body and headers in, a flow's answer out.

================  ======  =========================================================================
outcome           status  body
================  ======  =========================================================================
decided           200     ``{"decision", "did", "why"}``, ``look_again_at``, and ``plan`` on a dry run
asks for nothing  200     ``{"ignored": why}``
Reject            200     ``{"rejected": why}``, after the event is in the dead-letter topic
Retry             503     ``{"error": why}`` with Retry-After; also when the dead letter cannot be written
anything else     500     ``{"error": why}``: the sender backs off, and dead-letters it after its last attempt
================  ======  =========================================================================

A body that holds several events answers ``{"answers": [...]}`` with the worst status, and of those only the bad ones
are dead-lettered, each by itself; an event for every cluster,
``{"clusters": {name: ...}}`` likewise.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from pilotlight.adapters.logs import LOGGER, bound
from pilotlight.codec.events import Delivery, Ignored, Refused, decode
from pilotlight.errors import BadEvent, Corrupt, PilotlightError, Reject, Retry, Unavailable
from pilotlight.facts.messages import (
    Alert,
    BillExported,
    BudgetNotice,
    CapacityChanged,
    CapacityFailed,
    DeadLetter,
    InterruptionNotice,
    Message,
    Outgoing,
    PodPending,
    Tick,
)
from pilotlight.facts.policy import Policy
from pilotlight.flow.deps import Answer, Deps
from pilotlight.ports import Channel, Clock, Outbox, State
from pilotlight.settings import EVERY_CLUSTER, Settings

if TYPE_CHECKING:
    from pilotlight.flow.telling import Desk

Function = Literal["pod_pending", "capacity_reconcile", "spot_interruption", "billing_tick", "alert_fanout"]

RECEIVES: dict[Function, tuple[type[msgspec.Struct], ...]] = {
    "pod_pending": (PodPending,),
    "capacity_reconcile": (Tick, CapacityFailed),
    "spot_interruption": (InterruptionNotice, Tick),
    "billing_tick": (Tick, BudgetNotice, BillExported),
    "alert_fanout": (Alert, Tick),
}
"""The messages each function takes; of ticks, those of ``TICKS``."""

TICKS: dict[str, str] = {
    "reconcile": "capacity_reconcile",
    "billing": "billing_tick",
    "rescue": "spot_interruption",
    "alerts": "alert_fanout",
}
"""The function for each thing that a tick is for."""

KEPT_HEADERS = ("content-type", "user-agent", "ce-", "x-goog-pubsub-", "x-cloudscheduler")
"""Headers a dead letter keeps; never those that carry credentials."""

_log = logging.getLogger(LOGGER)


class House(Protocol):
    """What the door opens to; ``wiring.App`` is one."""

    settings: Settings

    @property
    def clusters(self) -> Sequence[str]:
        """The clusters it serves, by name."""
        ...

    def at(self, cluster: str) -> "House":
        """What serves one of them."""
        ...

    @property
    def late(self) -> Deps:
        """The one cluster's ports and policy, opened as they are used; of many, only ``at`` one has them."""
        ...

    @property
    def policy(self) -> Policy:
        """The policy; its alerts are those of every cluster."""
        ...

    @property
    def state(self) -> State:
        """What survives between events, of every cluster."""
        ...

    @property
    def outbox(self) -> Outbox:
        """Where messages go out."""
        ...

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Where alerts go, by the policy's names."""
        ...


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer. ``body`` holds JSON values only."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = {}

    def http(self) -> tuple[bytes, int, dict[str, str]]:
        """Body, status and headers, as Flask takes them."""
        return msgspec.json.encode(self.body), self.status, {"Content-Type": "application/json", **self.headers}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What came in, and where to."""

    house: House
    function: Function
    body: bytes
    headers: Mapping[str, str]
    dryrun: bool

    @property
    def deps(self) -> Deps:
        """The ports and policy of the one cluster it is about."""
        return self.house.late


def receive(
    house: House, function: Function, body: bytes, headers: Mapping[str, str], *, dryrun: bool = False
) -> Response:
    """Answer one request to a function. Never raises.

    ``dryrun`` decides and answers, and changes nothing, not even the state. The header
    ``x-pilotlight-dryrun: true`` and ``dryrun`` on the event ask for it too.
    """
    known = {key.lower(): value for key, value in headers.items()}
    try:
        _check(house, function)
    except Exception as error:  # A deployment that is set up wrongly must not dead-letter its events.
        return _failed(error, "not set up: ")
    dryrun = dryrun or known.get("x-pilotlight-dryrun", "").lower() in ("1", "true")
    request = _Request(house=house, function=function, body=body, headers=known, dryrun=dryrun)
    try:
        deliveries = _read(request)
    except Reject as error:
        return _refuse(request, error)
    answers = [_one(request, delivery) for delivery in deliveries]
    if len(answers) == 1:
        return answers[0]
    return _worst(answers, {"answers": [answer.body for answer in answers]})


def _check(house: House, function: Function) -> None:
    """Raises what is wrong with the whole deployment; one of many clusters answers for itself when its turn comes."""
    alone = house.clusters[0] if len(house.clusters) == 1 else ""
    _ = house.at(alone).late if alone else (house.state, house.outbox, house.policy)
    if function == "alert_fanout":
        _ = house.channels


def _worst(answers: Sequence[Response], body: dict[str, Any]) -> Response:
    """All of them in one, with the worst status and that one's headers."""
    worst = max(answers, key=lambda answer: answer.status, default=Response(status=200, body={}))
    return msgspec.structs.replace(worst, body=body)


def _read(request: _Request) -> list[Delivery | Refused]:
    limit = request.house.settings.max_body
    if len(request.body) > limit:
        raise BadEvent(f"{len(request.body):,} bytes are over the limit of {limit:,}")
    clusters = request.house.clusters
    return decode(request.body, request.headers, cluster=clusters[0] if len(clusters) == 1 else EVERY_CLUSTER)


def _one(request: _Request, delivery: Delivery | Refused) -> Response:
    """Answer one event of a request."""
    if isinstance(delivery, Refused):
        return _refuse(replace(request, body=delivery.body), delivery.error)
    request = replace(request, dryrun=request.dryrun or delivery.dryrun)
    message = delivery.message
    with bound(function=request.function, event=delivery.id, **_subject(message)):
        if isinstance(message, Ignored):
            return _ignore(message)
        clusters = _addressed(request.house, message)
        if isinstance(clusters, Ignored):
            return _ignore(clusters)
        if not clusters:
            return _answer(request, message)
        if len(clusters) == 1:
            return _at(request, message, clusters[0])
        return _abreast(request, message, clusters)


def _ignore(ignored: Ignored) -> Response:
    """``count`` is there to be summed over the log, by source and type."""
    counted = {"source": ignored.source, "type": ignored.type, "count": 1}
    _log.info("ignored", extra={"data": {"why": ignored.reason, **counted}})
    return Response(status=200, body={"ignored": ignored.reason})


def _abreast(request: _Request, message: Message, clusters: Sequence[str]) -> Response:
    """Every cluster's answer by its name: one that fails or hangs never delays another."""
    from pilotlight.flow.abreast import abreast

    work = {name: partial(_at, request, message, name) for name in clusters}
    found = abreast(work, request.house.settings.wait_s)
    answers = {name: _failed(each) if isinstance(each, Exception) else each for name, each in found.items()}
    return _worst(list(answers.values()), {"clusters": {name: answer.body for name, answer in answers.items()}})


def _at(request: _Request, message: Message, cluster: str) -> Response:
    """One cluster's answer, under this deployment's name of it."""
    with bound(cluster=cluster):
        try:
            site = request.house.at(cluster)
            _ = site.late
        except Exception as error:  # One of many clusters that is set up wrongly is no fault of the event.
            return _failed(error, "not set up: ")
        return _answer(replace(request, house=site), msgspec.structs.replace(message, cluster=cluster))


def _answer(request: _Request, message: Message) -> Response:
    try:
        answer = _run(request, message, request.dryrun)
    except Reject as error:
        return _refuse(request, error)
    except Exception as error:  # The one place that answers for what nobody foresaw.
        return _failed(error)
    _log.info("decided", extra={"data": {"decision": answer.decision, "did": answer.did, "why": answer.why}})
    return Response(status=200, body=_as_json(answer))


def _subject(message: Message | Ignored) -> dict[str, str]:
    match message:
        case PodPending():
            return {"cluster": message.cluster, "pod": f"{message.namespace}/{message.name}"}
        case Ignored():
            return {}
    return {"cluster": message.cluster} if not isinstance(message, DeadLetter) else {}


def _addressed(house: House, message: Message) -> Sequence[str] | Ignored:
    """The clusters a message is for, none where it is about none; a cluster that is not served is let pass.

    One that names no cluster is for all: events are hints, and each cluster looks for itself. A cloud's account is of
    all clusters, and the first one speaks for it. The embedded default takes whatever comes.
    """
    alerts = isinstance(message, Tick) and message.what == "alerts"
    if alerts or isinstance(message, Alert | CapacityChanged | DeadLetter):
        return ()
    if message.cluster in ("", EVERY_CLUSTER) or not (house.settings.cluster or house.settings.clusters):
        return house.clusters[:1] if isinstance(message, BudgetNotice | BillExported) else house.clusters
    if message.cluster in house.clusters:
        return (message.cluster,)
    return Ignored(reason=f"about cluster {message.cluster}; this deployment serves {', '.join(house.clusters)}")


def takes(function: Function, message: Message | Ignored) -> bool:
    """Whether a message is for a function."""
    ticks_here = not isinstance(message, Tick) or TICKS[message.what] == function
    return ticks_here and isinstance(message, RECEIVES[function])


def _run(request: _Request, message: Message, dryrun: bool) -> Answer:
    """The function's flow. Imported when it runs: a function pays at its start only for its own."""
    match request.function, message:
        case "pod_pending", PodPending():
            from pilotlight.flow.provision import provision

            return provision(request.deps, message, dry_run=dryrun)
        case "capacity_reconcile", CapacityFailed():
            from pilotlight.flow.refusal import refusal

            return refusal(request.deps, message, dry_run=dryrun)
        case "capacity_reconcile", Tick(what="reconcile"):
            from pilotlight.flow.reconcile import reconcile

            return reconcile(request.deps, message, dry_run=dryrun)
        case "spot_interruption", InterruptionNotice():
            from pilotlight.flow.interrupt import interrupt

            return interrupt(request.deps, message, dry_run=dryrun)
        case "spot_interruption", Tick(what="rescue"):
            from pilotlight.flow.rescues import go_on

            return go_on(request.deps, dry_run=dryrun)
        case "billing_tick", BudgetNotice() if not dryrun:
            from pilotlight.flow.cloud_budget import cloud_budget

            return cloud_budget(request.deps, message)
        case "billing_tick", Tick(what="billing") | BudgetNotice() | BillExported():
            from pilotlight.flow.billing import billing

            return billing(request.deps, message, dry_run=dryrun)
        case "alert_fanout", Alert():
            from pilotlight.flow.fan_out import fan_out

            return fan_out(_desk(request.house), message, dry_run=dryrun)
        case "alert_fanout", Tick(what="alerts"):
            from pilotlight.flow.flush import flush

            return flush(_desk(request.house), dry_run=dryrun)
    raise BadEvent(_misrouted(request.function, message), "type")


def _desk(house: House) -> "Desk":
    from pilotlight.flow.telling import Desk

    return Desk(
        channels=house.channels,
        policy=house.policy.alerts,
        state=house.state,
        outbox=house.outbox,
        clock=house.clock,
    )


def _misrouted(function: Function, message: Message) -> str:
    owners = [TICKS[message.what]] if isinstance(message, Tick) else [name for name in RECEIVES if takes(name, message)]
    what = f"a Tick for {message.what}" if isinstance(message, Tick) else type(message).__name__
    return f"{function} does not take {what}; send it to {' or '.join(owners) or 'nobody: it is ours'}"


def _as_json(answer: Answer) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(answer))
    return {key: value for key, value in body.items() if value is not None}


def _refuse(request: _Request, error: Reject) -> Response:
    """Dead letter first, then 200: a poisoned event neither loops nor is lost."""
    if not request.dryrun:
        try:
            request.house.outbox.publish([_dead_letter(request, error)])
            if isinstance(error, Corrupt) and len(request.house.clusters) == 1:
                _tell_corrupt(request, error)
        except Exception as lost:  # Whatever it is, the sender still has the event: it must not be told "done".
            return _failed(Unavailable(f"the dead letter could not be written: {lost}"))
    _log.warning("rejected", extra={"data": {"why": str(error)}})
    return Response(status=200, body={"rejected": str(error)})


def _tell_corrupt(request: _Request, error: Corrupt) -> None:
    """An event is poison to itself alone; a record that cannot be read stops a cluster, and people must know."""
    from pilotlight.flow.corrupt import tell_corrupt

    tell_corrupt(request.deps, error)


def _dead_letter(request: _Request, error: Reject) -> Outgoing:
    letter = DeadLetter(
        reason=str(error),
        path=error.path if isinstance(error, BadEvent) else "",
        function=request.function,
        body=request.body[: request.house.settings.max_body].decode(errors="backslashreplace"),
        headers={key: value for key, value in request.headers.items() if key.startswith(KEPT_HEADERS)},
        at=request.house.clock.now(),
    )
    # The same body refused again is the same letter.
    digest = blake2b(request.function.encode() + b"\0" + request.body, digest_size=12).hexdigest()
    return Outgoing(
        id=f"dead-{digest}",
        topic="dead-letter",
        type="dev.pilotlight.dead-letter.v1",
        key=request.function,
        data=msgspec.Raw(msgspec.json.encode(letter)),
    )


def _failed(error: Exception, doing: str = "") -> Response:
    """503 where later may work, else 500; the traceback goes to the log alone."""
    said = str(error) if isinstance(error, PilotlightError) else f"internal error ({type(error).__name__}); see the log"
    body = {"error": doing + said}
    if isinstance(error, Retry):
        _log.warning("retry", extra={"data": {"why": doing + said}})
        return Response(status=503, body=body, headers={"Retry-After": str(max(1, round(error.after_s)))})
    _log.error("failed", exc_info=error, extra={"data": {"why": doing + said}})
    return Response(status=500, body=body)
