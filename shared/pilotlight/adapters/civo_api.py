"""Civo's HTTP API: one call at a time, slowly, with its errors in our tree and its secrets nowhere.

Facts are those of civogo and Civo's documentation. Undocumented there, and therefore bounded here: how many calls it
takes in a second, and what it says when there are too many.
"""

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken, HttpAnswer, Site
from pilotlight.errors import (
    BadRequest,
    Busy,
    Forbidden,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Retry,
    Throttled,
    Unavailable,
    Unsure,
)
from pilotlight.ports.clouds import CALL_S, Gate
from pilotlight.units import Seconds

T = TypeVar("T")

URL = "https://api.civo.com"
READ_S: Seconds = 10
"""One try of a read ends within so long."""
WRITE_S: Seconds = CALL_S
BETWEEN_CALLS_S: Seconds = 0.25
ATTEMPTS = 3
LONGEST_PAUSE_S: Seconds = 10

KINDS: Mapping[str, type[PilotlightError]] = {
    "out_of_capacity": NoCapacity,
    "quota_limit_reached": QuotaExceeded,
    "cannot_scale_already_rescaling_cluster": Busy,
    "database_quota_lock_failed": Busy,
    "database_cluster_pool_instance_delete_failed": Unavailable,
    "requires_authentication": Forbidden,
    "authentication_failed": Forbidden,
    "authentication_invalid_key": Forbidden,
    "authentication_access_denied": Forbidden,
    "account_not_enabled_inc_card": Forbidden,
    "account_not_enabled_without_card": Forbidden,
}
"""Civo's codes, whatever status they come with. Any other code is told by its status."""
OF_THE_REQUEST = ("database_", "parameter_")
"""So begin codes about what was asked for: a refusal, also where its status is a server's error."""
UNREACHED = "region_unavailable"
"""Its API does not reach the region: whether the region got the request nobody says."""


class CivoRefusal(BadRequest):
    """Civo does not take the request. ``code`` is its own word for why, or empty."""

    def __init__(self, reason: str, code: str = "", status: int = 400) -> None:
        super().__init__(reason)
        self.code, self.status = code, status


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""
    reason: str = ""
    result: str = ""


class CivoApi:
    """One account in one region. Opens nothing before the first call; threads take turns."""

    def __init__(
        self, token: str, region: str, *, url: str = URL, sleep: Callable[[Seconds], None] = time.sleep
    ) -> None:
        self.region = region
        self._token, self._sleep = token, sleep
        self._site, self._base = Site(url), urlsplit(url).path.rstrip("/")
        self._lock = Lock()
        self._next = 0.0

    def get(self, path: str, shape: type[T], **params: str) -> T:
        """Read. Tried again within bounds: reading changes nothing."""
        for attempt in range(ATTEMPTS):
            try:
                with Deadline(READ_S) as deadline:
                    return self.get_once(deadline, path, shape, **params)
            except Retry as error:
                pause = error.after_s if isinstance(error, Throttled) else float(2**attempt)
                if attempt + 1 == ATTEMPTS or pause > LONGEST_PAUSE_S:
                    raise
                self._sleep(pause)
        raise AssertionError

    def get_once(self, deadline: Deadline, path: str, shape: type[T], **params: str) -> T:
        """Read, in one try."""
        self._take_turn()
        return self._call(deadline, "GET", path, shape, params)

    def put(self, deadline: Deadline, path: str, body: Mapping[str, Any], shape: type[T], gate: Gate) -> T:
        """Change, once, when ``gate`` lets it. Raises ``Unsure`` where only a read can tell whether it happened."""
        return self._call(deadline, "PUT", path, shape, {}, {**body, "region": self.region}, gate)

    def delete(self, deadline: Deadline, path: str, gate: Gate) -> None:
        """Delete, once: as ``put``."""
        self._call(deadline, "DELETE", path, msgspec.Raw, {}, None, gate)

    def _call(
        self,
        deadline: Deadline,
        method: str,
        path: str,
        shape: type[T],
        params: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        gate: Gate | None = None,
    ) -> T:
        lost: type[Unavailable] = Unsure if gate else Unavailable
        try:
            answer = self._ask(deadline, method, path, params, body, gate)
        except Broken as error:
            raise (lost if error.sent else Unavailable)(f"Civo does not answer {method} {path} ({error})") from None
        if answer.status >= 300:
            raise self._refusal(f"{method} {path}", answer, lost)
        try:
            return typed_json.decode(answer.body, shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise lost(f"Civo's answer to {method} {path} cannot be read: {error}") from None

    def _ask(
        self,
        deadline: Deadline,
        method: str,
        path: str,
        params: Mapping[str, str],
        body: Mapping[str, Any] | None,
        gate: Gate | None,
    ) -> HttpAnswer:
        headers = {"Authorization": f"bearer {self._token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        return self._site.ask(
            deadline,
            method,
            f"{self._base}{path}?{urlencode({**params, 'region': self.region})}",
            None if body is None else msgspec.json.encode(body),
            headers,
            gate=gate,
            repeatable=gate is None,
        )

    def _take_turn(self) -> None:
        """Reads are spaced. A change is not: it comes right after the read that it rests on."""
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                self._sleep(self._next - now)
            self._next = max(now, self._next) + BETWEEN_CALLS_S

    def _refusal(self, call: str, answer: HttpAnswer, lost: type[Unavailable]) -> PilotlightError:
        status, retry_after = answer.status, answer.headers.get("retry-after", "")
        try:
            problem = typed_json.decode(answer.body, _Problem)
        except (msgspec.DecodeError, UnicodeDecodeError):
            problem = _Problem()
        code = problem.code or problem.result
        said = f"Civo answers {call} with {status}" + (f": {code}" if code else "")
        if problem.reason:
            said += f" ({problem.reason[:200]})"
        said = said.replace(self._token, "***") if self._token else said
        kind = KINDS.get(code)
        if kind is not None:
            return kind(said)
        if status == 429:
            return Throttled(said, float(retry_after) if retry_after.isdigit() else 5.0)
        if status in (401, 403):
            return Forbidden(f"{said}; check CIVO_TOKEN and its rights")
        if status in (409, 423, 425):
            return Busy(said)
        acted = not 400 <= status < 500 or status == 408 or code == UNREACHED
        if acted and not code.startswith(OF_THE_REQUEST):
            return lost(said)  # Whether it acted is not known.
        return CivoRefusal(said, code, status)
