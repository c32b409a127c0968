"""The gate before the paths of ``serve``: who may come in, by ``request_access``, before a body is parsed.

What goes on inside has no token in it: neither a header nor the path.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from pilotlight.decide.limits.request_routes import Refusal
from pilotlight.doorway.web import CUT, LATE, YES, read_stream
from pilotlight.facts.limits.routes import Caller
from pilotlight.settings import MAX_BODY
from pilotlight.tools.serve.request_access import Admitted, Knock, entry

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

SECRETS = ("HTTP_AUTHORIZATION", "HTTP_X_PILOTLIGHT_SIGNATURE", "HTTP_X_PILOTLIGHT_LINK", "RAW_URI", "REQUEST_URI")
"""Where a secret may stand in what a server tells of a request."""
DRYRUN = "x-pilotlight-dryrun"


HEADS = ("/", "/healthz", "/readyz")
"""Paths that answer HEAD as GET without its body, as a check from outside asks. A link's page answers GET alone."""


def guard_paths(
    paths: Mapping[str, "WSGIApplication"], callers: Mapping[str, Caller], now: Callable[[], float] = time.time
) -> "WSGIApplication":
    """The applications by their paths, for those who may come in."""

    def route(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "HEAD" and environ.get("PATH_INFO") in HEADS:
            route({**environ, "REQUEST_METHOD": "GET"}, start)
            return []
        try:
            found = entry(_knock(environ), callers, now(), paths)
        except CUT:
            found = Refusal(*LATE)
        if isinstance(found, Refusal):
            return _refused(start, found)
        inside = {key: value for key, value in environ.items() if key not in SECRETS}
        return paths[found.path](_at(inside, found), start)

    return route


def answer(start: "StartResponse", status: int, body: dict[str, Any], *headers: tuple[str, str]) -> Iterable[bytes]:
    """A JSON answer."""
    said = json.dumps(body).encode()
    fixed = [("Content-Type", "application/json"), ("Content-Length", str(len(said)))]
    start(f"{status} {HTTPStatus(status).phrase}", [*fixed, *headers])
    return [said]


def _knock(environ: "WSGIEnvironment") -> Knock:
    headers = {
        key[5:].replace("_", "-").lower(): str(value) for key, value in environ.items() if key.startswith("HTTP_")
    }
    headers["content-type"] = str(environ.get("CONTENT_TYPE") or "")
    return Knock(
        method=environ["REQUEST_METHOD"],
        path=environ.get("PATH_INFO", ""),
        headers=headers,
        dry=_asks_dry(environ.get("QUERY_STRING", ""), headers),
        body=lambda: _kept(environ),
        alert=alert_of(environ),
    )


def _asks_dry(query: str, headers: Mapping[str, str]) -> bool:
    """True where a request asks for a dry run, outside of its body."""
    arguments = [part.partition("=")[2] for part in query.split("&") if part.partition("=")[0] == "dryrun"]
    said = headers.get(DRYRUN, "").lower() in YES
    return said or (bool(arguments) and arguments[0] in YES)


def alert_of(environ: "WSGIEnvironment") -> str:
    """The alert that is asked for, as ``/alert?alert=<cluster>/<digest>`` names it."""
    asked: list[str] = parse_qs(environ.get("QUERY_STRING", "")).get("alert", [""])
    return asked[0]


def bounded_stream(environ: "WSGIEnvironment", limit: int) -> bytes:
    """A bare WSGI request's body, or the first ``limit`` + 1 bytes of a longer one."""
    from werkzeug.wsgi import get_input_stream

    return read_stream(get_input_stream(environ), limit + 1)


def _kept(environ: "WSGIEnvironment") -> bytes:
    """The body, for a signature; who reads it after finds it again. Of one that is too large only its beginning."""
    body = bounded_stream(environ, MAX_BODY)
    environ["wsgi.input"], environ["CONTENT_LENGTH"] = BytesIO(body), str(len(body))
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    return body


def _at(environ: "WSGIEnvironment", found: Admitted) -> "WSGIEnvironment":
    # Whoever may only look is held to a dry run here, however the rest reads the request.
    dry = {"HTTP_X_PILOTLIGHT_DRYRUN": "true"} if found.dry else {}
    return {**environ, **dry, "SCRIPT_NAME": found.path, "PATH_INFO": "/"}


def _refused(start: "StartResponse", refusal: Refusal) -> Iterable[bytes]:
    headers = [("Allow", refusal.allow)] if refusal.allow else []
    if refusal.status == 401:
        headers.append(("WWW-Authenticate", "Bearer"))
    return answer(start, refusal.status, {"error": refusal.why}, *headers)
