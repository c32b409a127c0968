"""Who may come in, by the one table of paths, methods and rights."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pilotlight.decide.limits.request_routes import Refusal, at_function
from pilotlight.facts.limits.routes import FUNCTIONS, ROUTES, Caller
from pilotlight.tools.serve.request_access import Admitted, Knock, at_world, entry, loopback, signature

NOW = 1_790_000_000.0
SERVED = (*(f"/{name}" for name in FUNCTIONS), "/world/pods")
OPS, EYE, SEND, HOOK, SIGN, NEXT = (
    f"{name}-token-0123456789" for name in ("ops", "eye", "send", "hook", "sign", "next")
)
CALLERS = {
    "ops": Caller(token=OPS, roles=("operate",)),
    "eye": Caller(token=EYE, roles=("read",)),
    "alertmanager": Caller(token=SEND),
    "grid": Caller(token=HOOK, by="path"),
    "ci": Caller(token=SIGN, by="signature"),
}
LOCAL = {"host": "127.0.0.1:8080", "content-type": "application/json"}


def _status(knock: Knock, callers: Mapping[str, Caller] = CALLERS, served: tuple[str, ...] = SERVED) -> int:
    found = entry(knock, callers, NOW, served)
    return found.status if isinstance(found, Refusal) else 200


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _signed(key: str, at_s: float, body: bytes, *more: str) -> dict[str, str]:
    return {"x-pilotlight-signature": ",".join([f"t={int(at_s)}", *more, f"v1={signature(key, int(at_s), body)}"])}


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        pytest.param("/pod_pending", _bearer(SEND), 200, id="who may send sends"),
        pytest.param("/pod_pending/", _bearer(SEND), 200, id="a slash at the end is the same path"),
        pytest.param("/pod_pending", {"authorization": f"bearer {SEND}"}, 200, id="a scheme has no case"),
        pytest.param("/pod_pending", {}, 401, id="without a token nobody comes in"),
        pytest.param("/pod_pending", _bearer(SEND[:-1]), 401, id="a part of a token is none"),
        pytest.param("/pod_pending", _bearer(SEND + "x"), 401, id="a longer token is none"),
        pytest.param("/pod_pending", {"authorization": SEND}, 401, id="a token without its scheme is none"),
        pytest.param("/pod_pending", _bearer(HOOK), 401, id="a token of a path is none in a header"),
        pytest.param("/pod_pending", _bearer(SIGN), 401, id="a signing key is no token"),
        pytest.param("/pod_pending", _bearer(OPS), 403, id="who may operate may not send by that"),
        pytest.param("/pod_pending", _bearer(EYE), 403, id="who may read may not send"),
        pytest.param("/world/pods", _bearer(OPS), 200, id="who may operate makes pods in the world"),
        pytest.param("/world/pods", _bearer(SEND), 403, id="who may send makes no pods"),
        pytest.param(f"/in/grid/{HOOK}/pod_pending", {}, 200, id="a source without headers has its token in the path"),
        pytest.param(f"/in/other/{HOOK}/pod_pending", {}, 401, id="under its own name alone"),
        pytest.param("/in/grid/guess/pod_pending", {}, 401, id="a wrong token in a path is none"),
        pytest.param(f"/in/alertmanager/{SEND}/pod_pending", {}, 401, id="a token of a header is none in a path"),
        pytest.param(f"/in/grid/{HOOK}/world/pods", {}, 404, id="such a path leads to functions"),
        pytest.param("/nothing", _bearer(SEND), 404, id="a path that is not in the table is not there"),
        pytest.param("/", _bearer(SEND), 404, id="nor is the root"),
    ],
)
def test_a_token_opens_what_its_roles_say(path: str, headers: dict[str, str], status: int) -> None:
    """Each role opens its own rows; nothing else is opened by it."""
    assert _status(Knock("POST", path, headers)) == status


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_a_method_that_is_not_in_the_table_is_405(method: str) -> None:
    """With what it takes, for serve's paths, for a deployed function and for a world."""
    found = entry(Knock(method, "/pod_pending", _bearer(SEND)), CALLERS, NOW, SERVED)
    assert isinstance(found, Refusal)
    assert (found.status, found.allow) == (405, "POST")
    assert (at_function(method, "/") or Refusal(200, "")).status == 405
    assert (at_world(Knock(method, "/interrupt", LOCAL)) or Refusal(200, "")).status == 405


def test_a_function_of_a_cloud_has_one_path() -> None:
    """POST at its root goes on to the function; another path is 404."""
    assert at_function("POST", "/") is None
    assert (at_function("POST", "/admin") or Refusal(200, "")).status == 404


def test_who_may_read_gets_dry_runs_and_nothing_else() -> None:
    """A dry run is open to read and send, and what comes in by it is marked as one."""
    for token in (EYE, SEND):
        found = entry(Knock("POST", "/pod_pending", _bearer(token), dry=True), CALLERS, NOW, SERVED)
        assert found == Admitted("/pod_pending", dry=True)
    assert _status(Knock("POST", "/pod_pending", _bearer(OPS), dry=True)) == 403
    assert _status(Knock("POST", "/world/pods", _bearer(EYE), dry=True)) == 403


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        pytest.param(_signed(SIGN, NOW, b"{}"), b"{}", 200, id="a signed body comes in"),
        pytest.param(_signed(SIGN, NOW - 299, b"{}"), b"{}", 200, id="within five minutes"),
        pytest.param(_signed(SIGN, NOW - 301, b"{}"), b"{}", 401, id="not later: it may be a replay"),
        pytest.param(_signed(SIGN, NOW + 301, b"{}"), b"{}", 401, id="not from the future"),
        pytest.param(_signed(SIGN, NOW, b"{}"), b"{ }", 401, id="not with another body"),
        pytest.param(_signed(NEXT, NOW, b"{}"), b"{}", 401, id="not under a key that nobody knows"),
        pytest.param(_signed(SEND, NOW, b"{}"), b"{}", 401, id="not under a token of a header"),
        pytest.param(_signed(SIGN, NOW, b"{}", "v1=" + "0" * 64), b"{}", 200, id="one of several v1 is enough"),
        pytest.param({"x-pilotlight-signature": f"v1={signature(SIGN, 0, b'')}"}, b"", 401, id="not without a time"),
        pytest.param({"x-pilotlight-signature": "t=now,v1=x"}, b"", 401, id="nor with one that is none"),
        pytest.param(
            {**_bearer(SEND), "x-pilotlight-signature": "t=1,v1=x"}, b"", 401, id="a bad one is not mended by a token"
        ),
    ],
)
def test_a_signature_is_of_the_body_and_of_now(headers: dict[str, str], body: bytes, status: int) -> None:
    """HMAC of time and body, five minutes either way."""
    assert _status(Knock("POST", "/alert_fanout", headers, body=lambda: body)) == status


def test_no_refusal_shows_a_token() -> None:
    """Whatever is wrong with a request, the line says nothing of what it brought."""
    knocks = [
        Knock("POST", f"/in/grid/{HOOK}/nothing", {}),
        Knock("POST", f"/in/grid/{HOOK}", {}),
        Knock("GET", f"/in/grid/{HOOK}/pod_pending", {}),
        Knock("POST", f"/in/grid/{HOOK}x/pod_pending", {}),
        Knock("POST", "/world/pods", _bearer(SEND)),
        Knock("POST", "/pod_pending", _bearer(SEND + "x")),
    ]
    for knock in knocks:
        found = entry(knock, CALLERS, NOW, SERVED)
        assert isinstance(found, Refusal)
        assert not any(caller.token in found.why for caller in CALLERS.values())
    assert HOOK not in repr(CALLERS)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param(LOCAL, 200, id="a program of this machine comes in"),
        pytest.param({"host": "localhost"}, 200, id="without a content type too"),
        pytest.param({"host": "[::1]:8080"}, 200, id="over IPv6 too"),
        pytest.param({**LOCAL, "origin": "http://127.0.0.1:8080"}, 200, id="so does a page of its own"),
        pytest.param({"host": "evil.example:8080"}, 403, id="not under a name that was bound to 127.0.0.1"),
        pytest.param({"host": "127.0.0.1.evil.example"}, 403, id="nor under one that begins like it"),
        pytest.param({}, 403, id="nor without a Host"),
        pytest.param({**LOCAL, "origin": "https://evil.example"}, 403, id="not from a foreign page"),
        pytest.param({**LOCAL, "origin": "null"}, 403, id="nor from one that hides where it is from"),
        pytest.param({**LOCAL, "origin": "http://127.0.0.1:3000"}, 403, id="nor from another port's page"),
        pytest.param({**LOCAL, "content-type": "text/plain;charset=UTF-8"}, 415, id="not as plain text"),
        pytest.param({**LOCAL, "content-type": "Multipart/Form-Data; boundary=x"}, 415, id="nor as a form's parts"),
        pytest.param({**LOCAL, "content-type": "application/x-www-form-urlencoded"}, 415, id="nor as a form"),
    ],
)
def test_without_tokens_only_this_machines_programs_come_in(headers: dict[str, str], status: int) -> None:
    """What a page in a browser can send is refused, at serve and at a served world alike."""
    assert _status(Knock("POST", "/pod_pending", headers), {}) == status
    assert (at_world(Knock("POST", "/pods", headers)) or Refusal(200, "")).status == status


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
    ],
)
def test_loopback_is_this_machine(host: str, own: bool) -> None:
    """Every address of 127.0.0.0/8, ::1 and localhost; 0.0.0.0 is all networks."""
    assert loopback(host) is own


def test_the_guide_prints_the_table() -> None:
    """docs/guides/access.md has every row, and no other."""
    text = (Path(__file__).resolve().parents[3] / "docs" / "guides" / "access.md").read_text()
    printed = text.partition("<!-- doors -->\n")[2].partition("<!-- /doors -->")[0]
    free = {"function": "the cloud's", "serve": "anybody"}
    rows = [
        f"| {d.where} | `{d.method} {d.path}` | {' or '.join(d.rights) or free[d.where]} | {d.what} |" for d in ROUTES
    ]
    assert printed == "\n".join(["| where | path | right | what |", "|---|---|---|---|", *rows, ""])
