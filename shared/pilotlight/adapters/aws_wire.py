"""Transport of boto3's requests: over our own connections, under the deadline of the call that makes them.

boto3's own time limits are for one piece of an answer each, so a server that drips keeps a call alive for ever.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from threading import Lock, local
from typing import BinaryIO
from urllib.parse import urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSResponse, HeadersDict

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Site, Takes, target_of
from pilotlight.adapters.tunnels import site_at
from pilotlight.units import Seconds

LARGEST_ANSWER = 32 * 1024 * 1024
"""A page of DynamoDB is at most 1 MB of items; in base64 and JSON that is less than this by far."""


IN_MEMORY = 8 * 1024 * 1024


class Wire:
    """Sends for a boto3 client that has ``send`` as its ``before-send``; a call of its own ends within ``within_s``."""

    def __init__(self, within_s: Seconds, environ: Mapping[str, str] = {}) -> None:
        self._within_s, self._environ = within_s, environ
        self._sites: dict[str, Site] = {}
        self._lock = Lock()
        self._mine = local()

    @contextmanager
    def limit_requests(self, deadline: Deadline) -> Iterator[None]:
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
        with Deadline(self._within_s) as own:
            return self._sent(request, own)

    def _sent(self, request: AWSPreparedRequest, deadline: Deadline) -> AWSResponse:
        headers = {name: _text(value) for name, value in request.headers.items()}
        held = _Body() if request.stream_output else None
        answer = self._site(request.url).ask(
            deadline,
            request.method,
            target_of(request.url),
            request.body,
            headers,
            takes=Takes(LARGEST_ANSWER, into=None if held is None else held.file),
        )
        if held is not None and answer.status == HTTPStatus.OK:
            held.file.seek(0)
            return AWSResponse(request.url, answer.status, HeadersDict(answer.headers), held)
        response = AWSResponse(request.url, answer.status, HeadersDict(answer.headers), None)
        response._content = answer.body
        return response

    def _site(self, url: str) -> Site:
        where = urlsplit(url)
        with self._lock:
            return self._sites.setdefault(f"{where.scheme}://{where.netloc}", site_at(url, self._environ))


class _Body:
    """A whole body that boto3 reads as it would from a connection: a large one lies on the disk meanwhile."""

    def __init__(self) -> None:
        self.file: BinaryIO = SpooledTemporaryFile(max_size=IN_MEMORY)  # type: ignore[assignment]  # noqa: SIM115

    def read(self, size: int = -1) -> bytes:
        """As much as there is."""
        return self.file.read(size)

    def stream(self) -> Iterator[bytes]:
        """All of it."""
        while piece := self.file.read(IN_MEMORY):
            yield piece

    def close(self) -> None:
        """Forget it."""
        self.file.close()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
