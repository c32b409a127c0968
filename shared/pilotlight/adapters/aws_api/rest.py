"""One service of AWS in one region by its REST interface: JSON to a path, and JSON back as typed values."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from pilotlight.adapters.aws_api import refusals
from pilotlight.adapters.aws_api.reading import AwsService, read_again
from pilotlight.adapters.aws_api.signing import signed_rest
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken
from pilotlight.errors import Unavailable, Unsure
from pilotlight.ports.clouds import Gate
from pilotlight.units import Seconds

T = TypeVar("T")

READ_S: Seconds = 5
PAUSES_S: tuple[Seconds, ...] = (0.5, 1.0)
"""Between the tries of a read."""


class RestApi(AwsService):
    """A service with a REST interface."""

    def read(self, path: str, shape: type[T]) -> T:
        """Read. Tried again within bounds: reading changes nothing. Raises what AWS refuses with, in our words."""
        return self._read("GET", path, shape, b"")

    def look_up(self, path: str, shape: type[T], asked: Mapping[str, Any]) -> T:
        """The same, of an interface that is asked by a posted body."""
        return self._read("POST", path, shape, msgspec.json.encode(asked))

    def _read(self, method: str, path: str, shape: type[T], body: bytes) -> T:
        def once() -> T:
            with Deadline(READ_S) as deadline:
                return self._call(deadline, method, path, shape, body, None)

        return read_again(once, PAUSES_S, self.sleep)

    def change(self, deadline: Deadline, path: str, shape: type[T], asked: Mapping[str, Any], gate: Gate) -> T:
        """Change, once, when ``gate`` lets it. Raises ``Unsure`` where only a read can tell whether it happened."""
        return self._call(deadline, "POST", path, shape, msgspec.json.encode(asked), gate)

    def _call(self, deadline: Deadline, method: str, path: str, shape: type[T], body: bytes, gate: Gate | None) -> T:
        lost: type[Unavailable] = Unsure if gate else Unavailable
        keys = self._credentials.keys()
        url, now = f"{self._url}{path}", datetime.now(UTC)
        headers = signed_rest(method, url, body, keys, self._service, self.region, now)
        what = f"{method} {self._service} {path.partition('?')[0]}"
        try:
            answer = self._site.ask(deadline, method, path, body, headers, gate=gate, repeatable=gate is None)
        except Broken as error:
            raise (lost if error.sent else Unavailable)(f"AWS does not answer {what} ({error})") from None
        if answer.status != 200:
            code = answer.headers.get("x-amzn-errortype", "").partition(":")[0]
            _, words = refusals.said_in_json(answer.body)
            raise refusals.problem(what, answer.status, code, words, keys.hide, lost)
        try:
            return msgspec.json.decode(answer.body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise lost(f"AWS's answer to {what} cannot be read") from None
