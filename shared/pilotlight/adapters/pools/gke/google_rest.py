"""REST interfaces of Google: reads are tried again within bounds, a change is sent once when its gate lets it.
A token that is refused is taken anew, once a call.

Errors are those of Google's JSON interfaces: a status, a code for each, and words.
"""

import time
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.http import Broken, HttpAnswer
from pilotlight.adapters.pools.gke.refusals import refusal
from pilotlight.adapters.tunnels import site_at
from pilotlight.errors import Retry, Throttled, Unavailable, Unsure
from pilotlight.ports.clouds import Gate
from pilotlight.units import Seconds

T = TypeVar("T")

READ_S: Seconds = 10
"""One try of a read ends within so long."""
PAUSES_S: tuple[Seconds, ...] = (0.5, 2.0)
"""Between the tries of a read."""
PATIENCE_S: Seconds = 10
"""An answer that asks for more time than this is the caller's to wait for."""


class GoogleRest:
    """One interface. A token is shown to an address of https alone. Opens nothing before the first call."""

    def __init__(
        self,
        url: str,
        token: GoogleToken,
        environ: Mapping[str, str],
        *,
        sleep: Callable[[Seconds], None] = time.sleep,
    ) -> None:
        self._host = urlsplit(url).hostname or ""
        self._token = token if url.startswith("https://") else None
        self._site, self.sleep, self._tries_again = site_at(url, environ), sleep, True

    def without_patience(self) -> "GoogleRest":
        """The same, whose reads are tried once."""
        other = copy(self)
        other._tries_again = False
        return other

    def read(self, path: str, shape: type[T], method: str = "GET") -> T:
        """Read; by POST where that is how it is asked. Tried again within bounds: reading changes nothing."""
        for pause_s in PAUSES_S if self._tries_again else ():
            try:
                return self._read_once(path, shape, method)
            except Throttled as error:
                if error.after_s > PATIENCE_S:
                    raise
                self.sleep(max(pause_s, error.after_s))
            except Retry:
                self.sleep(pause_s)
        return self._read_once(path, shape, method)

    def _read_once(self, path: str, shape: type[T], method: str) -> T:
        with Deadline(READ_S) as deadline:
            return self.ask(deadline, method, path, shape)

    def change(self, deadline: Deadline, path: str, shape: type[T], body: Mapping[str, Any], gate: Gate) -> T:
        """Change, once, when ``gate`` lets it. Raises ``Unsure`` where only a read can tell whether it happened."""
        return self.ask(deadline, "POST", path, shape, msgspec.json.encode(body), gate)

    def ask(
        self,
        deadline: Deadline,
        method: str,
        path: str,
        shape: type[T],
        body: bytes | None = None,
        gate: Gate | None = None,
    ) -> T:
        """One call under a deadline of the caller's."""
        lost: type[Unavailable] = Unsure if gate else Unavailable
        what = f"{method} {path.partition('?')[0]} of {self._host}"
        answer = self._answer(deadline, method, path, body, gate, what)
        if not 200 <= answer.status < 300:
            raise refusal(what, answer, lost)
        try:
            return typed_json.decode(answer.body, shape)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise lost(f"Google's answer to {what} cannot be read") from None

    def _answer(
        self, deadline: Deadline, method: str, path: str, body: bytes | None, gate: Gate | None, what: str
    ) -> HttpAnswer:
        shown = self._token.header() if self._token else {}
        answer = self._sent(deadline, method, path, body, gate, what, shown)
        if answer.status == 401 and self._token:
            self._token.forget(shown)
            if gate is None:
                answer = self._sent(deadline, method, path, body, gate, what, self._token.header())
        return answer

    def _sent(
        self,
        deadline: Deadline,
        method: str,
        path: str,
        body: bytes | None,
        gate: Gate | None,
        what: str,
        shown: Mapping[str, str],
    ) -> HttpAnswer:
        headers = dict(shown)
        if body is not None:
            headers["Content-Type"] = "application/json"
        elif method == "POST":
            headers["Content-Length"] = "0"
        try:
            return self._site.ask(deadline, method, path, body, headers, gate=gate, repeatable=gate is None)
        except Broken as error:
            raise (Unsure if gate and error.sent else Unavailable)(f"Google does not answer {what} ({error})") from None
