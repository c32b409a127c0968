"""One call to an API server: verified, bounded in time and size, retried a little, each outcome an error of the tree.

=====================================  ==========================================
401, 403, a certificate not trusted    ``Forbidden``; after 401 the credential is renewed once
403 of a server that still starts      ``Unavailable``: it has not read its roles yet
404                                    ``Missing``, a ``BadRequest``
409                                    ``Conflict``
410                                    ``Expired``, an ``Unavailable``: list again from the start
429                                    ``Throttled``; ``Busy`` where a PodDisruptionBudget says so
400, 405, 413, 415, 422, redirects     ``BadRequest``
5xx, no answer, half an answer         ``Unavailable``
what is no such object                 ``Unavailable``: whoever answered, it was no API server
=====================================  ==========================================
"""

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access, Source
from pilotlight.adapters.http import Broken, HttpAnswer, Site, Takes
from pilotlight.errors import (
    BadRequest,
    Busy,
    Conflict,
    Forbidden,
    PilotlightError,
    Retry,
    Throttled,
    Unavailable,
    Unsure,
)
from pilotlight.ports.clouds import Gate
from pilotlight.units import Seconds

T = TypeVar("T")
D = TypeVar("D", covariant=True)

JSON = "application/json"
MERGE_PATCH, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_REVIEW = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"resourceAttributes": {"verb": "list", "resource": "nodes"}},
}
LARGEST_BODY = 32 * 1024 * 1024
"""Bytes of one answer: a page of 500 pods is a few megabytes, and an object at most about three. Of larger objects a
smaller page is asked for."""
SAID = 300
"""So much of a server's own words goes into an error."""

STARTING = "{}; the API server is still starting: it answers nobody about rights"

_log = logging.getLogger("pilotlight.kubernetes")


class Patience(NamedTuple):
    """Bounds of a call, in seconds: to connect, between two pieces of an answer, for a whole try, and for all tries.

    What asks for more patience than ``wait`` between two tries is left to the caller.
    """

    connect: Seconds = 3
    piece: Seconds = 10
    answer: Seconds = 30
    all: Seconds = 40
    wait: Seconds = 2
    tries: int = 3


PATIENCE = Patience()


class Missing(BadRequest):
    """There is no such object, or the server knows no such kind."""


class Expired(Unavailable):
    """A list took so long that its pages are gone: start again."""


class TooLarge(Unavailable):
    """An answer beyond ``LARGEST_BODY``: ask for less."""


class _Refused(Exception):
    """Refusal of a credential that may be out of date; ``problem`` is what to raise when it is not."""

    def __init__(self, problem: PilotlightError) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: tuple[_Cause, ...] = ()
    retry_after_seconds: float = 0


class _Status(msgspec.Struct, frozen=True):
    message: str = ""
    details: _Details = _Details()


class Nothing(msgspec.Struct, frozen=True):
    """An answer that is not read further."""


NOTHING: msgspec.json.Decoder[Nothing] = typed_json.decoder(Nothing)
_status: msgspec.json.Decoder[_Status] = typed_json.decoder(_Status)


class Decodes(Protocol[D]):
    """Makes a value of an answer's body."""

    def decode(self, body: bytes, /) -> D: ...


class Api:
    """An API server. Safe for many threads."""

    def __init__(
        self, source: Source, *, patience: Patience = PATIENCE, pause: Callable[[Seconds], None] = time.sleep
    ) -> None:
        self._source, self._patience, self._pause = source, patience, pause
        self._site: tuple[tuple[str, ...], Site] | None = None
        self._lock = Lock()

    def token(self) -> str:
        """The token that is shown now, or empty."""
        return self._source.access().token

    def get(self, path: str, decoder: Decodes[T], **query: str) -> T:
        """Read ``path`` with the non-empty parts of ``query``."""
        asked = {name: value for name, value in query.items() if value}
        return self.ask("GET", f"{path}?{urlencode(asked, quote_via=quote)}" if asked else path, decoder)

    def ask(self, method: str, path: str, decoder: Decodes[T], body: object = None, kind: str = JSON) -> T:
        """Make a call that may be repeated, and read its answer. Raises as the table above says."""
        began = time.monotonic()
        access, renewed = self._source.access(), False
        tries = 0
        while True:
            try:
                left_s = self._patience.all - (time.monotonic() - began)
                once = partial(
                    self._once, access, method, path, decoder, body, kind, min(self._patience.answer, left_s)
                )
                return self._believed(access, once)
            except _Refused as refused:
                fresh = None if renewed else self._source.access(anew=True)
                if fresh is None or fresh == access:
                    raise refused.problem from None
                access, renewed = fresh, True
            except (Throttled, Unavailable) as later:
                tries += 1
                wait = later.after_s if isinstance(later, Throttled) else 0.1 * 3**tries
                over = time.monotonic() - began + wait > self._patience.all
                if (
                    isinstance(later, Expired | TooLarge)
                    or tries >= self._patience.tries
                    or wait > self._patience.wait
                    or over
                ):
                    raise
                self._pause(wait)

    def change(self, method: str, path: str, body: object, gate: Gate) -> bool:
        """Make a change, sent once when ``gate`` lets it; false where it conflicts with what is there, or is gone.

        Raises as the table says; ``Unsure`` where only a read can tell whether it happened.
        """
        access = self._source.access()
        where = f"{method} {access.server}{path.partition('?')[0]}"
        try:
            answer = self._answer(access, method, path, body, JSON, self._patience.answer, gate)
        except Broken as error:
            raise (Unsure if error.sent else Unavailable)(_plain(f"{where}: {error}", access)) from None
        if answer.status == 409 or (answer.status == 404 and method == "DELETE"):
            return False
        if 400 <= answer.status < 500 and answer.status != 408:
            problem = _problem(answer, where, access)
            if isinstance(problem, Forbidden) and not self._knows_roles(access):
                raise Unavailable(STARTING.format(problem))
            raise problem.problem if isinstance(problem, _Refused) else problem
        try:
            if 200 <= answer.status < 300 and NOTHING.decode(answer.body):
                return True
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        raise Unsure(_plain(f"{where}: {answer.status}: {_said(answer.body).message[:SAID]}", access))

    def _believed(self, access: Access, once: Callable[[], T]) -> T:
        """One try. Its 403 is believed only of a server that has read its roles: until then it refuses all."""
        try:
            return once()
        except Forbidden as no:
            if not self._knows_roles(access):
                raise Unavailable(STARTING.format(no)) from None
            return once()  # It may have read them just now.

    def _knows_roles(self, access: Access) -> bool:
        """True where the server has read its roles: until then it refuses even what it lets everybody ask about."""
        try:
            status = self._answer(access, "POST", REVIEWS, _REVIEW, JSON, self._patience.answer).status
        except Broken:
            return False
        return status != 403 and status < 500

    def _once(
        self,
        access: Access,
        method: str,
        path: str,
        decoder: Decodes[T],
        body: object,
        kind: str,
        within_s: Seconds,
    ) -> T:
        where = f"{method} {access.server}{path.partition('?')[0]}"
        try:
            answer = self._answer(access, method, path, body, kind, within_s)
        except Broken as error:
            if error.insecure:
                problem = f"{where}: the connection cannot be trusted: {error}; check the CA and the client certificate"
                raise _Refused(Forbidden(_plain(problem, access))) from None
            if error.endless:
                raise TooLarge(f"{where}: answers with over {LARGEST_BODY // 2**20} MiB") from None
            problem = f"{where}: {error}; is the address right, and reachable from here?"
            raise Unavailable(_plain(problem, access)) from None
        _log.debug("call", extra={"data": {"call": where, "status": answer.status, "bytes": len(answer.body)}})
        if answer.status >= 300:
            raise _problem(answer, where, access)
        try:
            return decoder.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Unavailable(f"{where}: answers with what is not expected: {error}") from None

    def _answer(
        self,
        access: Access,
        method: str,
        path: str,
        body: object,
        kind: str,
        within_s: Seconds,
        gate: Gate | None = None,
    ) -> HttpAnswer:
        """One request's answer, whatever its status. Raises ``Broken``, or what ``gate`` does."""
        with Deadline(within_s) as deadline:
            return self._site_of(access).ask(
                deadline,
                method,
                urlsplit(access.server).path.rstrip("/") + path,
                None if body is None else msgspec.json.encode(body),
                _headers(access, kind if body is not None else ""),
                gate=gate,
                repeatable=gate is None,
                takes=Takes(LARGEST_BODY, self._patience.piece),
            )

    def _site_of(self, access: Access) -> Site:
        """Connections for an access; another address, proxy, CA or certificate needs others."""
        with self._lock:
            if self._site is None or self._site[0] != access.way:
                self._site = access.way, self._opened(access)
            return self._site[1]

    def _opened(self, access: Access) -> Site:
        context = access.context() if access.server.startswith("https") else None
        name, connect_s = access.server_name, self._patience.connect
        if not access.proxy:
            return Site(access.server, context=context, server_name=name, connect_s=connect_s)
        from pilotlight.adapters.tunnels import TunnelledSite

        return TunnelledSite(access.server, access.proxy, context=context, server_name=name, connect_s=connect_s)


def _headers(access: Access, kind: str) -> dict[str, str]:
    headers = {"Accept": JSON, "User-Agent": "pilotlight"}
    if kind:
        headers["Content-Type"] = kind
    if access.acting_as:
        headers["Impersonate-User"] = access.acting_as
    if access.token:
        headers["Authorization"] = f"Bearer {access.token}"
    return headers


def _problem(answer: HttpAnswer, where: str, access: Access) -> Exception:
    said = _said(answer.body)
    line = _plain(f"{where}: {answer.status}: {said.message}"[: len(where) + SAID], access)
    match answer.status:
        case 401:
            return _Refused(Forbidden(f"{line}; the credential is refused: renew it"))
        case 403:
            return Forbidden(f"{line}; grant it with pilotlight connect, and --act to buy")
        case 404:
            return Missing(line)
        case 409:
            return Conflict(line)
        case 410:
            return Expired(line)
        case 429:
            return _throttled(line, answer.headers, said.details)
        case status:  # A redirection is a proxy's, no answer of an API server.
            return BadRequest(line) if 400 <= status < 500 else Unavailable(line)


def _throttled(line: str, headers: Mapping[str, str], details: _Details) -> Retry:
    text = headers.get("retry-after", "")
    after = float(text) if text.isascii() and text.isdigit() else details.retry_after_seconds
    if any(cause.reason == "DisruptionBudget" for cause in details.causes):
        busy = Busy(line)
        busy.after_s = after or busy.after_s
        return busy
    return Throttled(line, after) if after else Throttled(line)


def _said(data: bytes) -> _Status:
    try:
        return _status.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Status(message=data[:SAID].decode(errors="replace"))


def _plain(text: str, access: Access) -> str:
    """One line, without what was shown."""
    for secret in (access.token, access.key):
        text = text.replace(secret, "(secret)") if secret else text
    return " ".join(text.split())
