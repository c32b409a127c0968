"""Answers to requests, and dead letters of events that are refused."""

import logging
from collections.abc import Sequence
from hashlib import blake2b, sha256
from typing import Any

import msgspec

from pilotlight.adapters.logs import LOGGER
from pilotlight.doorway.functions import Request
from pilotlight.errors import BadEvent, Corrupt, PilotlightError, Reject, Retry, StoreFault, TooMuch, Unavailable
from pilotlight.facts.messages import DeadLetter, Message, Outgoing, Tick
from pilotlight.flow.answer import Answer

KEPT_HEADERS = ("content-type", "user-agent", "ce-", "x-goog-pubsub-", "x-cloudscheduler")
"""Headers a dead letter keeps; never those that carry credentials."""

STALLED_S = 60
"""When a tick is worth another try that something stands in the way of: a person has to act first."""

SHORT = 2_000
"""Letters of a body that is too much which its dead letter keeps."""

_log = logging.getLogger(LOGGER)


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer. ``body`` holds JSON values only."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = {}

    def http(self) -> tuple[bytes, int, dict[str, str]]:
        """Body, status and headers, as Flask takes them."""
        return msgspec.json.encode(self.body), self.status, {"Content-Type": "application/json", **self.headers}


def worst(answers: Sequence[Response], body: dict[str, Any]) -> Response:
    """All of them in one, with the worst status and that one's headers."""
    found = max(answers, key=lambda answer: answer.status, default=Response(status=200, body={}))
    return msgspec.structs.replace(found, body=body)


def answer_decision(answer: Answer, message: Message) -> Response:
    """Answer with a flow's decision. A rescue is looked at several times a second: only what it does is logged."""
    figured: object = answer
    if answer.plan is not None:  # Only a plan has figures.
        from pilotlight.codec.printable import printable

        figured = printable(answer)
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(figured))
    waits = isinstance(message, Tick) and message.what == "rescue" and not answer.did
    said = {"decision": answer.decision, "did": answer.did, "why": answer.why}
    _log.log(logging.DEBUG if waits else logging.INFO, "decided", extra={"data": said})
    return Response(status=200, body={key: value for key, value in body.items() if value is not None})


def refuse(request: Request, error: Reject, status: int = 200) -> Response:
    """Dead letter first, then 200: a poisoned event neither loops nor is lost."""
    if not request.dryrun:
        try:
            request.house.outbox.publish([_dead_letter(request, error)])
        except Exception as lost:  # Whatever it is, the sender still has the event: it must not be told "done".
            return answer_failure(Unavailable(f"the dead letter could not be written: {lost}"))
    _log.warning("rejected", extra={"data": {"why": str(error)}})
    return Response(status=status, body={"rejected": str(error)})


def answer_stalled_tick(request: Request, tick: Tick, error: Exception) -> Response:
    """A schedule's tick is never poison: the next one asks for the same. People are told once, its sender each time."""
    answer = answer_failure(error)
    if isinstance(error, Retry) and not isinstance(error, StoreFault):
        return answer
    if not request.dryrun:
        try:
            from pilotlight.flow.alerts.own_troubles import tell_stalled

            tell_stalled(request.deps, tick, error, answer.body["error"])
        except Exception as untold:  # The sender is told in any case.
            _log.error("not told", exc_info=untold)
    return Response(status=503, body=answer.body, headers={"Retry-After": str(STALLED_S)})


def kept_back(request: Request, error: StoreFault) -> Response:
    """The store's fault is not the event's: it is sent again. A record that cannot be read stops a cluster, and people
    must know."""
    if isinstance(error, Corrupt) and not request.dryrun and len(request.house.clusters) == 1:
        try:
            from pilotlight.flow.alerts.own_troubles import tell_corrupt

            tell_corrupt(request.deps, error)
        except Exception as untold:  # The sender is told in any case.
            _log.error("not told", exc_info=untold)
    return answer_failure(error)


def _dead_letter(request: Request, error: Reject) -> Outgoing:
    from pilotlight.codec.redact import redact_secrets

    kept = SHORT if isinstance(error, TooMuch) else request.house.settings.max_body
    digest = sha256(request.body).hexdigest()
    letter = DeadLetter(
        reason=redact_secrets(str(error)),
        path=error.path if isinstance(error, BadEvent) else "",
        function=request.function,
        body=redact_secrets(request.body[:kept].decode(errors="backslashreplace")[:kept]),
        headers={key: redact_secrets(value) for key, value in request.headers.items() if key.startswith(KEPT_HEADERS)},
        at=request.house.clock.now(),
        size=_size(request),
        sha256=digest,
    )
    # The same body refused again for the same reason is the same letter.
    name = blake2b("\0".join((request.function, letter.reason, digest)).encode(), digest_size=12).hexdigest()
    return Outgoing(
        id=f"dead-{name}",
        topic="dead-letter",
        type="dev.pilotlight.dead-letter.v1",
        key=request.function,
        data=msgspec.Raw(msgspec.json.encode(letter)),
    )


def _size(request: Request) -> int:
    """Bytes that came in, or that the sender says it sends where they were not read to their end."""
    said = request.headers.get("content-length", "")
    whole = len(request.body) <= request.house.settings.max_body
    return len(request.body) if whole or not said.isdecimal() else max(len(request.body), int(said[:18]))


def answer_failure(error: Exception, doing: str = "") -> Response:
    """503 where later may work, else 500; the traceback goes to the log alone.

    The log needs no store: what a person has to mend of one is an error there, whatever can be told elsewhere.
    """
    said = str(error) if isinstance(error, PilotlightError) else f"internal error ({type(error).__name__}); see the log"
    body = {"error": doing + said}
    if isinstance(error, Retry):
        level = logging.ERROR if isinstance(error, StoreFault) else logging.WARNING
        _log.log(level, "retry", extra={"data": {"why": doing + said}})
        return Response(status=503, body=body, headers={"Retry-After": str(max(1, round(error.after_s)))})
    _log.error("failed", exc_info=error, extra={"data": {"why": doing + said}})
    return Response(status=500, body=body)
