"""A function's HTTP: which requests it takes at all, and how much of a body is read."""

from io import BytesIO
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec
from werkzeug.exceptions import BadRequest

from pilotlight.doorway.door import receive
from pilotlight.doorway.functions import Function, House

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

CUT = (OSError, BadRequest)
"""What reading a body raises that does not arrive whole."""
LATE = (408, "the body did not arrive whole; send it again")

YES = ("1", "true")

Answered = tuple[bytes, int, dict[str, str]]
"""Body, status and headers, as Flask takes them."""


def respond(house: House, function: Function, request: "Request") -> Answered:
    """Answer one HTTP request to a function. A body over the limit is read so far that it is seen to be."""
    if request.method != "POST" or request.path != "/":
        from pilotlight.decide.limits.request_routes import at_function

        refusal = at_function(request.method, request.path)
        if refusal is not None:
            unread(request)
            return _refused(*refusal)
    try:
        body = read_body(request, house.settings.max_body)
    except CUT:
        unread(request)
        return _refused(*LATE)
    dryrun = request.args.get("dryrun") in YES
    return receive(house, function, body, dict(request.headers), dryrun=dryrun, spare_s=inf).http()


def _refused(status: int, why: str, allow: str = "") -> Answered:
    headers = {"Content-Type": "application/json", **({"Allow": allow} if allow else {})}
    return msgspec.json.encode({"error": why}), status, headers


def read_body(request: "Request", limit: int) -> bytes:
    """A request's body, or the first ``limit`` + 1 bytes of a longer one, whatever its length is said to be."""
    body = read_stream(request.stream, limit + 1)
    unread(request)
    return body


def unread(request: "Request") -> None:
    """Leave the rest where it is: the framework reads what a function did not, to its end."""
    request.__dict__["stream"] = BytesIO()


def read_stream(stream: Any, most: int) -> bytes:
    """A stream to its end, or its first ``most`` bytes."""
    parts, left = list[bytes](), most
    while left and (part := stream.read(min(left, 65_536))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
