"""Civo's HTTP API: one call at a time, slowly, with its errors in our tree and its secrets nowhere.

Facts are those of civogo and Civo's documentation. Undocumented there, and therefore bounded here: how many calls it
takes in a second, and what it says when there are too many.
"""

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

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
)
from pilotlight.units import Seconds

if TYPE_CHECKING:
    import requests

T = TypeVar("T")

URL = "https://api.civo.com"
TIMEOUT_S: Seconds = 10
WHOLE_S: Seconds = 30
"""An answer that is not whole after so long is given up, however steadily it drips."""
LARGEST_ANSWER = 8 * 1024 * 1024
BETWEEN_CALLS_S: Seconds = 0.25
ATTEMPTS = 3
LONGEST_PAUSE_S: Seconds = 10

KINDS: Mapping[str, type[PilotlightError]] = {
    "out_of_capacity": NoCapacity,
    "quota_limit_reached": QuotaExceeded,
    "cannot_scale_already_rescaling_cluster": Busy,
    "database_quota_lock_failed": Busy,
    "database_cluster_pool_instance_delete_failed": Unavailable,
    "region_unavailable": Unavailable,
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
        self._token, self._url, self._sleep = token, url.rstrip("/"), sleep
        self._session: requests.Session | None = None
        self._lock = Lock()
        self._next = 0.0

    def get(self, path: str, shape: type[T], **params: str) -> T:
        """Read. Tried again within bounds: reading changes nothing."""
        for attempt in range(ATTEMPTS):
            try:
                return self._call("GET", path, shape, params)
            except Retry as error:
                pause = error.after_s if isinstance(error, Throttled) else float(2**attempt)
                if attempt + 1 == ATTEMPTS or pause > LONGEST_PAUSE_S:
                    raise
                self._sleep(pause)
        raise AssertionError

    def put(self, path: str, body: Mapping[str, Any], shape: type[T]) -> T:
        """Change, once: after a ``Retry`` it is unknown whether it happened, and only a read can tell."""
        return self._call("PUT", path, shape, {}, {**body, "region": self.region})

    def delete(self, path: str) -> None:
        """Delete, once: as ``put``."""
        self._call("DELETE", path, msgspec.Raw, {})

    def _call(
        self, method: str, path: str, shape: type[T], params: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> T:
        import requests

        with self._lock:
            self._wait_turn()
            if self._session is None:
                self._session = requests.Session()
                self._session.headers["Authorization"] = f"bearer {self._token}"
            try:
                with self._session.request(
                    method,
                    f"{self._url}{path}",
                    params={**params, "region": self.region},
                    json=body,
                    timeout=TIMEOUT_S,
                    allow_redirects=False,
                    stream=True,
                ) as answer:
                    text = _whole(answer)
            except requests.RequestException as error:
                # Its text may hold the address with what was asked; its kind says enough.
                raise Unavailable(f"Civo does not answer {method} {path} ({type(error).__name__})") from None
        if answer.status_code >= 300:
            raise self._refusal(f"{method} {path}", answer.status_code, text, answer.headers.get("Retry-After", ""))
        try:
            return msgspec.json.decode(text, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(f"Civo's answer to {method} {path} cannot be read: {error}") from None

    def _wait_turn(self) -> None:
        now = time.monotonic()
        if now < self._next:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + BETWEEN_CALLS_S

    def _refusal(self, call: str, status: int, text: bytes, retry_after: str) -> PilotlightError:
        try:
            problem = msgspec.json.decode(text, type=_Problem)
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
        if status in (408, 409, 423, 425):
            return Busy(said)
        if status >= 500 and not code.startswith(OF_THE_REQUEST):
            return Unavailable(said)  # Whether it acted is not known.
        return CivoRefusal(said, code, status)


def _whole(answer: "requests.Response") -> bytes:
    """The body, as long as it comes within bounds."""
    ends, parts, size = time.monotonic() + WHOLE_S, [], 0
    for part in answer.iter_content(64 * 1024):
        parts.append(part)
        size += len(part)
        if size > LARGEST_ANSWER or time.monotonic() > ends:
            raise Unavailable("Civo's answer does not end")
    return b"".join(parts)
