"""Access of requests to serve, by the table of routes: pure, over what a request's first lines say.

With callers set up, one of their secrets opens a door: a Bearer token, a token in the path, the signature in an alert's
link (``X-Pilotlight-Link``), or a signature of the body (``X-Pilotlight-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256
of "t.body">``, several ``v1`` while a key changes). With none, only this machine's own programs come in: pages in
a browser are told by Host, Origin, Sec-Fetch-Site and the content types of forms.
"""

import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from pilotlight.decide.alerts.alert_routing import link_signature
from pilotlight.decide.limits.request_routes import Refusal, refuse_misplaced, routes_at, taking_method
from pilotlight.facts.limits.routes import Caller, Route, RouteRight
from pilotlight.units import Seconds

WINDOW_S: Seconds = 300
"""How far a signature's time may be from ours, either way."""
FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
"""What a page in a browser can send anywhere without being asked."""


class Knock(NamedTuple):
    """A request's first lines: headers' names in lower case. ``body`` reads what a signature is of; ``alert`` is
    the one that is asked for."""

    method: str
    path: str
    headers: Mapping[str, str]
    dry: bool = False
    body: Callable[[], bytes] = bytes
    alert: str = ""


class Admitted(NamedTuple):
    """It comes in: at ``path``, which has no token in it any more, and for a dry run alone where it asked for one."""

    path: str
    dry: bool = False


def entry(knock: Knock, callers: Mapping[str, Caller], now_s: Seconds, served: Collection[str]) -> Admitted | Refusal:
    """Admission or refusal of a request at ``serve``, whose paths these are. ``now_s`` is the wall's clock."""
    name, secret, path = _parts(knock.path)
    rows = routes_at("serve", path, knock.dry) if path in served else ()
    if not rows:
        shown = "/in/..." if name else knock.path
        return Refusal(404, f"nothing at {shown}; there are {', '.join(served)}")
    fitting = taking_method(rows, path, knock.method)
    if isinstance(fitting, Refusal):
        return fitting
    if all(not row.rights for row in fitting):
        return Admitted(path)
    refusal = _known(knock, callers, now_s, name, secret, fitting) if callers else stranger(knock)
    if refusal is None and any("acknowledge" in row.rights for row in fitting):
        refusal = _foreign(knock)
    return refusal or Admitted(path, knock.dry)


def at_world(knock: Knock) -> Refusal | None:
    """Refusal of a request to a served world, which asks for no token: it listens on this machine alone."""
    return refuse_misplaced("world", knock.method, knock.path) or stranger(knock)


def _foreign(knock: Knock) -> Refusal | None:
    """Refusal that keeps other sites' pages from acknowledging, whatever token they bring."""
    origin = knock.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != knock.headers.get("host", ""):
        return Refusal(403, "another site's page sent this: its Origin is not the Host that was asked")
    if knock.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return Refusal(403, "another site's page sent this")
    return None


def stranger(knock: Knock) -> Refusal | None:
    """Refusal of a page in a browser, told from a program of this machine, where no tokens are set up."""
    host = knock.headers.get("host", "")
    if not loopback(_name(host)):
        return Refusal(403, "the Host header names another machine; without PILOTLIGHT_TOKENS only 127.0.0.1 is served")
    origin = knock.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        return Refusal(
            403, "a page in a browser sent this (its Origin is not ours); set PILOTLIGHT_TOKENS to let it in"
        )
    if knock.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return Refusal(403, "a page of another site asked for this; set PILOTLIGHT_TOKENS to let it in")
    kind = knock.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORMS:
        return Refusal(415, f"{kind} is what a form sends; say -H 'content-type: application/json'")
    return None


def loopback(host: str) -> bool:
    """True for a name or address of this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def signature(key: str, at_s: int, body: bytes) -> str:
    """The hex HMAC-SHA256 of ``t.body``."""
    return hmac.digest(key.encode(), b"%d." % at_s + body, "sha256").hex()


def _parts(path: str) -> tuple[str, str, str]:
    """Source, token and plain path, of a path with a token in it or without."""
    clean = "/" + path.strip("/")
    match clean.split("/"):
        case ["", "in", name, secret, function]:
            return name, secret, f"/{function}"
        case ["", "in", *_]:
            return "?", "", clean
    return "", "", clean


def _known(
    knock: Knock, callers: Mapping[str, Caller], now_s: Seconds, name: str, secret: str, doors: tuple[Route, ...]
) -> Refusal | None:
    """Refusal of a request that none of the callers sent who has a right of these doors."""
    if name:
        found = _by_path(callers, name, secret)
    elif "x-pilotlight-signature" in knock.headers:
        found = _by_signature(callers, knock, now_s)
    elif "x-pilotlight-link" in knock.headers:
        found = _by_link(callers, knock)
    else:
        found = _by_header(callers, knock.headers.get("authorization", ""))
    if found is None:
        return Refusal(401, "no token, or one that is not known; see the guide on access")
    wanted = {right for door in doors for right in door.rights}
    if wanted & set(found):
        return None
    return Refusal(403, f"this token may {' and '.join(found) or 'nothing'}; it takes {' or '.join(sorted(wanted))}")


def _by_header(callers: Mapping[str, Caller], header: str) -> tuple[RouteRight, ...] | None:
    scheme, _, secret = header.partition(" ")
    known = [(each.token, each.roles) for each in callers.values() if each.by == "header"]
    return _matching(known, secret.strip()) if scheme.lower() == "bearer" else None


def _by_path(callers: Mapping[str, Caller], name: str, secret: str) -> tuple[RouteRight, ...] | None:
    known = [(each.token, each.roles) for key, each in callers.items() if each.by == "path" and key == name]
    return _matching(known, secret)


def _by_signature(callers: Mapping[str, Caller], knock: Knock, now_s: Seconds) -> tuple[RouteRight, ...] | None:
    words = [part.strip().partition("=") for part in knock.headers["x-pilotlight-signature"].split(",")]
    times = [value for key, _, value in words if key == "t"]
    if len(times) != 1 or not (times[0].isascii() and times[0].isdigit() and len(times[0]) <= 12):
        return None
    if abs(now_s - int(times[0])) > WINDOW_S:
        return None
    body = knock.body()
    known = [
        (signature(each.token, int(times[0]), body), each.roles) for each in callers.values() if each.by == "signature"
    ]
    found = [_matching(known, value.lower()) for key, _, value in words if key == "v1"]
    return next((roles for roles in found if roles is not None), None)


def _by_link(callers: Mapping[str, Caller], knock: Knock) -> tuple[RouteRight, ...] | None:
    """A link acknowledges, and does nothing else whatever its key's roles."""
    may: tuple[RouteRight, ...] = ("acknowledge",)
    known = [(link_signature(each.token, knock.alert), may) for each in callers.values() if each.by == "link"]
    return _matching(known, knock.headers["x-pilotlight-link"].lower()) if knock.alert else None


def _matching(known: list[tuple[str, tuple[RouteRight, ...]]], given: str) -> tuple[RouteRight, ...] | None:
    """The roles of the secret that was given. Every one is compared, whichever it is, and in constant time."""
    digest = hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest()
    found: tuple[RouteRight, ...] | None = None
    for secret, roles in known:
        if hmac.compare_digest(hashlib.sha256(secret.encode()).digest(), digest):
            found = roles
    return found


def _name(host: str) -> str:
    """The host of a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
