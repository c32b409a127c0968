"""One service of AWS in one region by its query interface: a form goes out, XML comes back as typed values."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

from pilotlight.adapters.aws_api.forms import form
from pilotlight.adapters.aws_api.reading import AwsService, read_again
from pilotlight.adapters.aws_api.signing import signed_headers
from pilotlight.adapters.aws_api.xml_answers import problem, read_answer
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken
from pilotlight.errors import Unavailable, Unsure
from pilotlight.ports.clouds import Gate
from pilotlight.units import Seconds

T = TypeVar("T")

READ_S: Seconds = 10
"""One try of a read ends within so long."""
PAUSES_S: tuple[Seconds, ...] = (0.5, 2.0)
"""Between the tries of a read."""


class QueryApi(AwsService):
    """A service with a query interface."""

    def read(self, action: str, shape: type[T], params: Mapping[str, str]) -> T:
        """Read. Tried again within bounds: reading changes nothing."""

        def once() -> T:
            with Deadline(READ_S) as deadline:
                return self._call(deadline, action, shape, params, None)

        return read_again(once, PAUSES_S, self.sleep)

    def change(self, deadline: Deadline, action: str, shape: type[T], params: Mapping[str, str], gate: Gate) -> T:
        """Change, once, when ``gate`` lets it. Raises ``Unsure`` where only a read can tell whether it happened."""
        return self._call(deadline, action, shape, params, gate)

    def _call(self, deadline: Deadline, action: str, shape: type[T], params: Mapping[str, str], gate: Gate | None) -> T:
        lost: type[Unavailable] = Unsure if gate else Unavailable
        body = form(action, self._service, params)
        keys = self._credentials.keys()
        headers = signed_headers(self._url, body, keys, self._service, self.region, datetime.now(UTC))
        try:
            answer = self._site.ask(deadline, "POST", "/", body, headers, gate=gate, repeatable=gate is None)
        except Broken as error:
            raise (lost if error.sent else Unavailable)(f"AWS does not answer {action} ({error})") from None
        if answer.status != 200:
            raise problem(action, answer, keys, lost)
        return read_answer(action, answer, shape, lost)
