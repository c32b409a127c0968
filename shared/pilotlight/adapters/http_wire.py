"""HTTP/1.1 as bytes: a request in one piece, and an answer as it comes.

The standard library's own client imports a whole mail package, which costs a cold start more than many requests.
"""

import re
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

CHUNK = 64 * 1024
LONGEST_LINE = 64 * 1024
MOST_HEADERS = 100
CONTINUE = 100
NO_BODY = (204, 304)

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BROKEN_VALUE = re.compile(rb"[\r\n\x00]")
_BROKEN_TARGET = re.compile(rb"[\x00-\x20\x7f]")
_DATE = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):([0-5]\d) GMT", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: .*)?", re.DOTALL)


class Malformed(Exception):
    """What was to be sent, or what came, is no HTTP. ``str()`` says what, and quotes nothing."""


def written(method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    """A request. Raises ``Malformed`` where a name, a value or the target would end a line or is of no byte."""
    try:
        asked = (method.encode("ascii"), target.encode("ascii"))
        lines = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
    except UnicodeError:
        raise Malformed("the request holds what HTTP cannot carry") from None
    given = {name.lower() for name, _ in lines}
    if b"accept-encoding" not in given:
        lines.append((b"Accept-Encoding", b"identity"))
    if b"content-length" not in given and (body is not None or method in ("PATCH", "POST", "PUT")):
        lines.append((b"Content-Length", b"%d" % len(body or b"")))
    fits = _TOKEN.fullmatch(asked[0]) and not _BROKEN_TARGET.search(asked[1])
    if not fits or not all(_TOKEN.fullmatch(name) and not _BROKEN_VALUE.search(value) for name, value in lines):
        raise Malformed("the request holds what HTTP cannot carry")
    head = b"".join(b"%b: %b\r\n" % line for line in lines)
    return b"%b %b HTTP/1.1\r\n" % asked + head + b"\r\n" + (body or b"")


class Reply:
    """One answer on a connection. ``begin``, then ``pieces``; both raise ``OSError`` or ``Malformed``."""

    def __init__(self, connection: socket.socket, method: str) -> None:
        self._file = connection.makefile("rb")
        self._method = method
        self._chunked = False
        self.status = 0
        self.headers: dict[str, str] | None = None
        """By their names in lower case, once the head was read."""
        self.left: int | None = None
        """Bytes that are still to come, where the answer says how many."""
        self.closes = True
        """Whether the connection is of no more use after this answer."""

    def begin(self) -> None:
        """Read the head."""
        minor, self.status = self._status()
        while self.status == CONTINUE:
            self._fields()
            minor, self.status = self._status()
        headers = self._fields()
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self.left = None if self._chunked else _length(headers)
        if self.status in NO_BODY or self.status < 200 or self._method == "HEAD":
            self._chunked, self.left = False, 0
        said = headers.get("connection", "").lower()
        stays = "close" not in said if minor else "keep-alive" in said
        self.closes = not stays or (self.left is None and not self._chunked)
        self.headers = headers

    def pieces(self) -> Iterator[bytes]:
        """The body, as it comes. Ends early where the connection does: ``left`` says what was still to come."""
        if not self._chunked:
            while self.left != 0 and (piece := self._file.read1(min(CHUNK, CHUNK if self.left is None else self.left))):
                if self.left is not None:
                    self.left -= len(piece)
                yield piece
            return
        while size := self._size():
            while size:
                piece = self._file.read1(min(CHUNK, size))
                if not piece:
                    raise Malformed("half an answer")
                size -= len(piece)
                yield piece
            self._line()
        self._fields()

    def close(self) -> None:
        """Forget what was buffered; the connection stays as it is."""
        self._file.close()

    def _status(self) -> tuple[int, int]:
        """The minor version, and the status."""
        line = self._file.readline(LONGEST_LINE)
        if not line:
            raise ConnectionResetError("Remote end closed connection without response")
        found = _STATUS.fullmatch(line.rstrip(b"\r\n"))
        if found is None or not line.endswith(b"\n"):
            raise Malformed("the answer is no HTTP")
        return int(found[1]), int(found[2])

    def _fields(self) -> dict[str, str]:
        """Header lines up to the empty one. Of those that come twice the last counts, a length must be the same."""
        found: dict[str, str] = {}
        last = ""
        for _ in range(MOST_HEADERS + 1):
            line = self._line()
            if not line:
                return found
            if line[:1] in b" \t" and last:
                found[last] += " " + line.strip().decode("latin-1")
                continue
            name, colon, value = line.decode("latin-1").partition(":")
            last, value = name.strip().lower(), value.strip()
            if not colon or (last == "content-length" and found.get(last, value) != value):
                raise Malformed("the answer's headers cannot be read")
            found[last] = value
        raise Malformed("the answer has too many headers")

    def _size(self) -> int:
        text = self._line().partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9a-fA-F]{1,15}", text):
            raise Malformed("half an answer")
        return int(text, 16)

    def _line(self) -> bytes:
        line = self._file.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise Malformed("half an answer")
        return line.rstrip(b"\r\n")


def moment_of(text: str) -> datetime:
    """The time of a Date or Retry-After header. Raises ``ValueError``, or ``TypeError``, for what is none."""
    if (found := _DATE.fullmatch(text)) and found[2] in _MONTHS:
        day, year, hour, minute, second = map(int, found.group(1, 3, 4, 5, 6))
        return datetime(year, _MONTHS.index(found[2]) + 1, day, hour, minute, second, tzinfo=UTC)
    from email.utils import parsedate_to_datetime

    return parsedate_to_datetime(text)


def _length(headers: Mapping[str, str]) -> int | None:
    said = headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() else None
