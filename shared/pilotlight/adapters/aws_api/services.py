"""Services of AWS in one region, by query interface, JSON or REST; reads are tried again within bounds.

A query goes out as a form, and XML comes back. JSON goes to one place, the call's name in a header; REST to a path.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.aws_api import refusals
from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.forms import address, form
from pilotlight.adapters.aws_api.signing import signed_headers, signed_rest
from pilotlight.adapters.aws_api.xml_answers import problem, read_answer
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken, HttpAnswer, Site
from pilotlight.adapters.tunnels import site_at
from pilotlight.errors import Retry, Throttled, Unavailable, Unsure
from pilotlight.ports.clouds import Gate
from pilotlight.units import Seconds

T = TypeVar("T")

QUERY_READ_S: Seconds = 10
"""One try of a read ends within so long, of a query interface; then of one that speaks JSON."""
JSON_READ_S: Seconds = 5
QUERY_PAUSES_S: tuple[Seconds, ...] = (0.5, 2.0)
"""Between the tries of a read of a query interface; then of one that speaks JSON."""
JSON_PAUSES_S: tuple[Seconds, ...] = (0.5, 1.0)
KINDS = {"sqs": "application/x-amz-json-1.0"}
KIND = "application/x-amz-json-1.1"
TARGETS = {
    "athena": "AmazonAthena",
    "ce": "AWSInsightsIndexService",
    "pricing": "AWSPriceListService",
    "servicequotas": "ServiceQuotasV20190624",
    "sqs": "AmazonSQS",
}
"""What calls of a JSON interface are named by, where that is not the service."""


class AwsService:
    """A service, called with these credentials. Opens nothing before the first call; safe for many threads."""

    def __init__(
        self,
        service: str,
        region: str,
        credentials: Credentials,
        environ: Mapping[str, str],
        *,
        sleep: Callable[[Seconds], None] = time.sleep,
        site: Callable[[str], Site] | None = None,
    ) -> None:
        self._service, self.region, self._credentials, self.sleep = service, region, credentials, sleep
        self._url = address(service, region, environ)
        self._site = site(self._url) if site else site_at(self._url, environ)

    def _ask(
        self,
        deadline: Deadline,
        what: str,
        method: str,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        gate: Gate | None = None,
    ) -> HttpAnswer:
        try:
            return self._site.ask(deadline, method, path, body, headers, gate=gate, repeatable=gate is None)
        except Broken as error:
            lost = Unsure if gate and error.sent else Unavailable
            raise lost(f"AWS does not answer {what} ({error})") from None


class QueryApi(AwsService):
    """A service with a query interface."""

    def read(self, action: str, shape: type[T], params: Mapping[str, str]) -> T:
        """Read. Tried again within bounds: reading changes nothing."""

        def once() -> T:
            with Deadline(QUERY_READ_S) as deadline:
                return self._call(deadline, action, shape, params, None)

        return _read_again(once, QUERY_PAUSES_S, self.sleep)

    def change(self, deadline: Deadline, action: str, shape: type[T], params: Mapping[str, str], gate: Gate) -> T:
        """Change, once, when ``gate`` lets it. Raises ``Unsure`` where only a read can tell whether it happened."""
        return self._call(deadline, action, shape, params, gate)

    def _call(self, deadline: Deadline, action: str, shape: type[T], params: Mapping[str, str], gate: Gate | None) -> T:
        lost: type[Unavailable] = Unsure if gate else Unavailable
        body = form(action, self._service, params)
        keys = self._credentials.keys()
        headers = signed_headers(self._url, body, keys, self._service, self.region, datetime.now(UTC))
        answer = self._ask(deadline, action, "POST", "/", body, headers, gate)
        if answer.status != 200:
            raise problem(action, answer, keys, lost)
        return read_answer(action, answer, shape, lost)


class JsonApi(AwsService):
    """A service with a JSON interface."""

    def read(self, action: str, shape: type[T], asked: Mapping[str, Any]) -> T:
        """Read. Tried again within bounds: reading changes nothing. Raises what AWS refuses with, in our words."""
        return _read_again(lambda: self._call(action, shape, asked), JSON_PAUSES_S, self.sleep)

    def _call(self, action: str, shape: type[T], asked: Mapping[str, Any]) -> T:
        body = msgspec.json.encode(asked)
        keys, target = self._credentials.keys(), f"{TARGETS.get(self._service, self._service)}.{action}"
        now = datetime.now(UTC)
        kind = KINDS.get(self._service, KIND)
        headers = signed_headers(self._url, body, keys, self._service, self.region, now, kind=kind, target=target)
        with Deadline(JSON_READ_S) as deadline:
            answer = self._ask(deadline, action, "POST", "/", body, headers)
        if answer.status != 200:
            code, words = refusals.said_in_json(answer.body)
            raise refusals.problem(action, answer.status, code, words, keys.hide, Unavailable)
        return _decoded(action, answer, shape, Unavailable)


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
            with Deadline(JSON_READ_S) as deadline:
                return self._call(deadline, method, path, shape, body, None)

        return _read_again(once, JSON_PAUSES_S, self.sleep)

    def change(self, deadline: Deadline, path: str, shape: type[T], asked: Mapping[str, Any], gate: Gate) -> T:
        """Change, once, when ``gate`` lets it. Raises ``Unsure`` where only a read can tell whether it happened."""
        return self._call(deadline, "POST", path, shape, msgspec.json.encode(asked), gate)

    def _call(self, deadline: Deadline, method: str, path: str, shape: type[T], body: bytes, gate: Gate | None) -> T:
        lost: type[Unavailable] = Unsure if gate else Unavailable
        keys = self._credentials.keys()
        url, now = f"{self._url}{path}", datetime.now(UTC)
        headers = signed_rest(method, url, body, keys, self._service, self.region, now)
        what = f"{method} {self._service} {path.partition('?')[0]}"
        answer = self._ask(deadline, what, method, path, body, headers, gate)
        if answer.status != 200:
            code = answer.headers.get("x-amzn-errortype", "").partition(":")[0]
            _, words = refusals.said_in_json(answer.body)
            raise refusals.problem(what, answer.status, code, words, keys.hide, lost)
        return _decoded(what, answer, shape, lost)


class Nothing(msgspec.Struct, frozen=True):
    """An answer that says nothing."""


def pages(
    read: Callable[[str, type[T], Mapping[str, Any]], T], action: str, shape: type[T], asked: Mapping[str, Any]
) -> Iterator[T]:
    """Every page of what is read, as its token leads on: ``nextToken`` in answers of EC2."""
    more: Mapping[str, str] = {}
    while True:
        page = read(action, shape, {**asked, **more})
        yield page
        token = getattr(page, "NextToken", "") or getattr(page, "nextToken", "")
        if not token:
            return
        more = {"NextToken": token}


def members(name: str, values: Iterable[str], item: str = "member.") -> dict[str, str]:
    """A list in a form: ``Name.member.1``, or ``Name.1`` where ``item`` is empty, as EC2 has them."""
    return {f"{name}.{item}{n}": value for n, value in enumerate(values, 1)}


def _read_again(once: Callable[[], T], pauses_s: Sequence[Seconds], sleep: Callable[[Seconds], None]) -> T:
    """Answer of ``once``, tried again after each pause, or as long as AWS asks for. Raises the last error."""
    for pause_s in pauses_s:
        try:
            return once()
        except Retry as error:
            sleep(max(pause_s, error.after_s) if isinstance(error, Throttled) else pause_s)
    return once()


def _decoded(what: str, answer: HttpAnswer, shape: type[T], lost: type[Unavailable]) -> T:
    try:
        return typed_json.decode(answer.body, shape)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise lost(f"AWS's answer to {what} cannot be read") from None
