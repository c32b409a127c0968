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

A body that holds several events answers ``{"answers": [...]}`` with the worst status.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, Protocol

import msgspec

from pilotlight.adapters.logs import LOGGER, bound
from pilotlight.codec.events import Delivery, Ignored, decode
from pilotlight.errors import BadEvent, PilotlightError, Reject, Retry, Unavailable
from pilotlight.facts.messages import Alert, CapacityChanged, DeadLetter, Message, Outgoing, PodPending, Tick
from pilotlight.flow.deps import Answer, Deps
from pilotlight.ports import Channel
from pilotlight.settings import Settings

Function = Literal["pod_pending", "capacity_reconcile", "alert_fanout"]

RECEIVES: dict[Function, tuple[type[msgspec.Struct], ...]] = {
    "pod_pending": (PodPending,),
    "capacity_reconcile": (Tick,),
    "alert_fanout": (Alert,),
}
"""The messages each function takes."""

KEPT_HEADERS = ("content-type", "user-agent", "ce-", "x-goog-pubsub-", "x-cloudscheduler")
"""Headers a dead letter keeps; never those that carry credentials."""

_log = logging.getLogger(LOGGER)


class House(Protocol):
    """What the door opens to; ``wiring.App`` is one."""

    settings: Settings

    @property
    def deps(self) -> Deps:
        """The cluster's ports and policy."""
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
    deps: Deps
    function: Function
    body: bytes
    headers: Mapping[str, str]
    dryrun: bool


def receive(
    house: House, function: Function, body: bytes, headers: Mapping[str, str], *, dryrun: bool = False
) -> Response:
    """Answer one request to a function. Never raises.

    ``dryrun`` decides and answers, and changes nothing, not even the state. The header
    ``x-pilotlight-dryrun: true`` and ``dryrun`` on the event ask for it too.
    """
    known = {key.lower(): value for key, value in headers.items()}
    try:
        deps = house.deps
        if function == "alert_fanout":
            _ = house.channels
    except Exception as error:  # A deployment that is set up wrongly must not dead-letter its events.
        return _failed(error, "not set up: ")
    dryrun = dryrun or known.get("x-pilotlight-dryrun", "").lower() in ("1", "true")
    request = _Request(house=house, deps=deps, function=function, body=body, headers=known, dryrun=dryrun)
    try:
        deliveries = _read(request)
    except Reject as error:
        return _refuse(request, error, dryrun=dryrun)
    answers = [_one(request, delivery) for delivery in deliveries]
    if len(answers) == 1:
        return answers[0]
    worst = max(answers, key=lambda answer: answer.status, default=Response(status=200, body={}))
    return msgspec.structs.replace(worst, body={"answers": [answer.body for answer in answers]})


def _read(request: _Request) -> list[Delivery]:
    limit = request.house.settings.max_body
    if len(request.body) > limit:
        raise BadEvent(f"{len(request.body):,} bytes are over the limit of {limit:,}")
    return decode(request.body, request.headers, cluster=request.deps.name)


def _one(request: _Request, delivery: Delivery) -> Response:
    """Answer one event of a request."""
    dryrun = request.dryrun or delivery.dryrun
    with bound(function=request.function, event=delivery.id, **_subject(delivery.message)):
        try:
            message = _for_here(request, delivery.message)
            if isinstance(message, Ignored):
                _log.info("ignored", extra={"data": {"why": message.reason}})
                return Response(status=200, body={"ignored": message.reason})
            answer = _run(request, message, dryrun)
        except Reject as error:
            return _refuse(request, error, dryrun=dryrun)
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


def _for_here(request: _Request, message: Message | Ignored) -> Message | Ignored:
    """The message under this deployment's name of the cluster; another cluster's is let pass."""
    if isinstance(message, Ignored | Alert | CapacityChanged | DeadLetter) or message.cluster == request.deps.name:
        return message
    if request.house.settings.cluster:
        return Ignored(reason=f"about cluster {message.cluster}; this deployment serves {request.deps.name}")
    return msgspec.structs.replace(message, cluster=request.deps.name)


def _run(request: _Request, message: Message, dryrun: bool) -> Answer:
    """The function's flow. Imported when it runs: a function pays at its start only for its own."""
    deps = request.deps
    match request.function, message:
        case "pod_pending", PodPending():
            from pilotlight.flow.provision import provision

            return provision(deps, message, dry_run=dryrun)
        case "capacity_reconcile", Tick():
            from pilotlight.flow.reconcile import reconcile

            return reconcile(deps, message, dry_run=dryrun)
        case "alert_fanout", Alert():
            from pilotlight.flow.fan_out import fan_out

            return fan_out(request.house.channels, deps.state, deps.policy.alerts, message, dry_run=dryrun)
    raise BadEvent(_misrouted(request.function, message), "type")


def _misrouted(function: Function, message: Message) -> str:
    owners = [name for name, shapes in RECEIVES.items() if isinstance(message, shapes)]
    return (
        f"{function} does not take {type(message).__name__}; send it to {' or '.join(owners) or 'nobody: it is ours'}"
    )


def _as_json(answer: Answer) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(answer))
    return {key: value for key, value in body.items() if value is not None}


def _refuse(request: _Request, error: Reject, *, dryrun: bool) -> Response:
    """Dead letter first, then 200: a poisoned event neither loops nor is lost."""
    if not dryrun:
        try:
            request.deps.outbox.publish([_dead_letter(request, error)])
        except Exception as lost:  # Whatever it is, the sender still has the event: it must not be told "done".
            return _failed(Unavailable(f"the dead letter could not be written: {lost}"))
    _log.warning("rejected", extra={"data": {"why": str(error)}})
    return Response(status=200, body={"rejected": str(error)})


def _dead_letter(request: _Request, error: Reject) -> Outgoing:
    letter = DeadLetter(
        reason=str(error),
        path=error.path if isinstance(error, BadEvent) else "",
        function=request.function,
        body=request.body[: request.house.settings.max_body].decode(errors="backslashreplace"),
        headers={key: value for key, value in request.headers.items() if key.startswith(KEPT_HEADERS)},
        at=request.deps.clock.now(),
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
