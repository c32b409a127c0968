"""A served world's HTTP, as its adapters use it: errors of the tree."""

from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken, Site, Takes
from pilotlight.codec.world_wire import (
    Created,
    Doomed,
    PodStatus,
    Problem,
    Report,
    Time,
    error_of,
)
from pilotlight.errors import BadInput, Failed, Unavailable, Unsure
from pilotlight.facts.workload import PodDemand
from pilotlight.ports.clouds import CALL_S, Gate
from pilotlight.units import Seconds

_LOOK = Takes(largest=256 * 1024 * 1024)
"""A world tells all its pods and nodes at once: 40,000 pods are some 30 MB."""


class WorldClient:
    """Calls a world at ``url``, as "http://127.0.0.1:8090". Raises ``BadInput`` for what is no such address."""

    def __init__(self, url: str, *, within_s: Seconds = CALL_S) -> None:
        where = urlsplit(url)
        if where.scheme != "http" or not where.hostname or "@" in where.netloc:
            found = "an address with a credential" if "@" in url else repr(url)
            raise BadInput(f"PILOTLIGHT_WORLD is {found}: use http://HOST:PORT of a running pilotlight world")
        self.url = url
        self._site, self._within_s = Site(url), within_s

    def call(self, path: str, **arguments: object) -> bytes:
        """Post a call; what it gives. It may be repeated, so one over a stale connection is."""
        return self._exchange("POST", path, msgspec.json.encode(arguments))

    def change(self, path: str, gate: Gate, **arguments: object) -> bytes:
        """Post a call that is sent once, when ``gate`` lets it. Raises ``Unsure`` where its answer is lost."""
        return self._exchange("POST", path, msgspec.json.encode(arguments), gate)

    def time(self) -> Time:
        """The world's moment and speed."""
        return typed_json.decode(self._exchange("GET", "clock"), Time)

    def report(self) -> Report:
        """The world so far."""
        return typed_json.decode(self._exchange("GET", "report"), Report)

    def pods(self) -> tuple[PodStatus, ...]:
        """Every pod there is or was."""
        return typed_json.decode(self._exchange("GET", "pods"), tuple[PodStatus, ...])

    def create(self, demands: Sequence[PodDemand], run_s: Seconds, busy_s: Seconds | None = None) -> list[str]:
        """Create pods that run so long; the names of those that were not there. ``busy_s``: how long their GPUs
        do something after each start, None for always."""
        gives = self.call("pods", demands=tuple(demands), run_s=run_s, busy_s=busy_s)
        return list(typed_json.decode(gives, Created).created)

    def interrupt(self, instance: str, notice_s: Seconds) -> Doomed:
        """The cloud takes an instance after so long; when that is."""
        gives = self.call("interrupt", instance=instance, notice_s=notice_s)
        return typed_json.decode(gives, Doomed)

    def _exchange(self, method: str, path: str, body: bytes | None = None, gate: Gate | None = None) -> bytes:
        try:
            with Deadline(self._within_s) as deadline:
                answer = self._site.ask(deadline, method, f"/{path}", body, gate=gate, repeatable=not gate, takes=_LOOK)
        except Broken as error:
            kind = Unsure if gate and error.sent else Unavailable
            raise kind(f"the world at {self.url}: {error}; is it running?") from None
        if answer.status != 200:
            raise self._error(answer.body)
        return answer.body

    def _error(self, gives: bytes) -> Exception:
        try:
            return error_of(typed_json.decode(gives, Problem))
        except msgspec.DecodeError:
            return Failed(f"{self.url} does not answer as a world does; name one in PILOTLIGHT_WORLD")
