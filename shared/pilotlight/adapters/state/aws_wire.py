"""How boto3's requests travel: over our own connections, under the deadline of the call that makes them.

boto3's own time limits are for one piece of an answer each, so a server that drips keeps a call alive for ever.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from pilotlight.adapters.deadline import Deadline
from pilotlight.adapters.http import Site, target_of
from pilotlight.adapters.state.calls import STORE_S

LARGEST_ANSWER = 32 * 1024 * 1024
"""A page of DynamoDB is at most 1 MB of items; in base64 and JSON that is less than this by far."""


class Wire:
    """Sends for a boto3 client that has ``send`` as its ``before-send``."""

    def __init__(self) -> None:
        self._sites: dict[str, Site] = {}
        self._lock = Lock()
        self._mine = local()

    @contextmanager
    def under(self, deadline: Deadline) -> Iterator[None]:
        """This thread's requests end with that deadline."""
        self._mine.deadline = deadline
        try:
            yield
        finally:
            self._mine.deadline = None

    def send(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        """The answer to a signed request. Raises ``Broken``."""
        deadline: Deadline | None = getattr(self._mine, "deadline", None)
        if deadline is not None:
            return self._sent(request, deadline)
        with Deadline(STORE_S) as own:
            return self._sent(request, own)

    def _sent(self, request: AWSPreparedRequest, deadline: Deadline) -> AWSResponse:
        headers = {name: _text(value) for name, value in request.headers.items()}
        answer = self._site(request.url).ask(
            deadline, request.method, target_of(request.url), request.body, headers, largest=LARGEST_ANSWER
        )
        response = AWSResponse(request.url, answer.status, answer.headers, None)
        response._content = answer.body
        return response

    def _site(self, url: str) -> Site:
        where = urlsplit(url)
        with self._lock:
            return self._sites.setdefault(f"{where.scheme}://{where.netloc}", Site(url))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
