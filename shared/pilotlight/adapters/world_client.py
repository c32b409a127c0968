"""A served world's HTTP, as its adapters use it: one connection a thread, errors of the tree."""

import threading
from collections.abc import Sequence
from http.client import BadStatusLine, HTTPConnection, HTTPException
from urllib.parse import urlsplit

import msgspec

from pilotlight.codec.world import (
    Created,
    Doomed,
    Interrupt,
    NewPods,
    Nothing,
    PodStatus,
    Problem,
    Report,
    Time,
    error_of,
)
from pilotlight.errors import BadInput, Failed, Unavailable
from pilotlight.facts.workload import PodDemand
from pilotlight.units import Seconds

TIMEOUT_S: Seconds = 30

_STALE = (BadStatusLine, BrokenPipeError, ConnectionResetError)
"""A kept connection that the other side has closed meanwhile."""


class WorldClient:
    """Calls a world at ``url``, as "http://127.0.0.1:8090". Raises ``BadInput`` for what is no such address."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        if where.scheme != "http" or not where.hostname or "@" in where.netloc:
            found = "an address with a credential" if "@" in url else repr(url)
            raise BadInput(f"PILOTLIGHT_WORLD is {found}: use http://HOST:PORT of a running pilotlight world")
        self.url = url
        self._address = where.netloc
        self._mine = threading.local()

    def call(self, path: str, arguments: msgspec.Struct | None = None) -> bytes:
        """Post a call; what it gives. Every call of a world may be repeated, so one over a stale connection is."""
        return self._exchange("POST", path, msgspec.json.encode(arguments or Nothing()))

    def time(self) -> Time:
        """The world's moment and speed."""
        return msgspec.json.decode(self._exchange("GET", "clock"), type=Time)

    def report(self) -> Report:
        """The world so far."""
        return msgspec.json.decode(self._exchange("GET", "report"), type=Report)

    def pods(self) -> tuple[PodStatus, ...]:
        """Every pod there is or was."""
        return msgspec.json.decode(self._exchange("GET", "pods"), type=tuple[PodStatus, ...])

    def create(self, demands: Sequence[PodDemand], run_s: Seconds) -> list[str]:
        """Create pods that run so long; the names of those that were not there."""
        gives = self.call("pods", NewPods(demands=tuple(demands), run_s=run_s))
        return list(msgspec.json.decode(gives, type=Created).created)

    def interrupt(self, instance: str, notice_s: Seconds) -> Doomed:
        """The cloud takes an instance after so long; when that is."""
        gives = self.call("interrupt", Interrupt(instance=instance, notice_s=notice_s))
        return msgspec.json.decode(gives, type=Doomed)

    def _exchange(self, method: str, path: str, body: bytes = b"") -> bytes:
        try:
            try:
                status, gives = self._once(method, path, body)
            except _STALE:
                self._close()
                status, gives = self._once(method, path, body)
        except (OSError, HTTPException) as error:
            self._close()
            raise Unavailable(f"the world at {self.url}: {error or type(error).__name__}; is it running?") from None
        if status != 200:
            raise self._error(gives)
        return gives

    def _once(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        connection: HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is None:
            connection = self._mine.connection = HTTPConnection(self._address, timeout=TIMEOUT_S)
        connection.request(method, f"/{path}", body)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _close(self) -> None:
        if getattr(self._mine, "connection", None) is not None:
            self._mine.connection.close()
            self._mine.connection = None

    def _error(self, gives: bytes) -> Exception:
        try:
            return error_of(msgspec.json.decode(gives, type=Problem))
        except msgspec.DecodeError:
            return Failed(f"{self.url} does not answer as a world does; name one in PILOTLIGHT_WORLD")
