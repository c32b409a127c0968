"""Every way a call to an API server can end, by the error tree; how often it is tried; and that no secret shows."""

import logging
from collections.abc import Iterator

import msgspec
import pytest
from api_server import Access as Review
from api_server import ApiServer, api_server
from odd_server import Line, talking
from rich.pretty import pretty_repr

from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.adapters.cluster.kubernetes.reads import Reads
from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, REVIEWS, Api, Expired, Missing, Patience
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.errors import (
    BadInput,
    BadRequest,
    Busy,
    Conflict,
    Forbidden,
    PilotlightError,
    Throttled,
    Unavailable,
    Unsure,
)
from pilotlight.facts.policy import Policy

POD_LIST = listing(Pod)
QUICK = Patience(connect=1, piece=0.2, answer=0.4, all=2, wait=2, tries=3)


class Fixed:
    """A source of one token after another: ``renewed`` counts how often a new one was asked for."""

    def __init__(self, server: str, *tokens: str) -> None:
        self._server, self._tokens, self.renewed = server, list(tokens) or [""], 0

    def access(self, *, anew: bool = False) -> Access:
        """The first token left; ``anew`` goes on to the next."""
        if anew:
            self.renewed += 1
            self._tokens = self._tokens[1:] or self._tokens
        return Access(server=self._server, token=self._tokens[0])


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """The recorded cluster."""
    with api_server() as made:
        made.add_samples()
        yield made


@pytest.fixture
def pauses() -> list[float]:
    """The seconds that were waited between tries."""
    return []


@pytest.fixture
def api(server: ApiServer, pauses: list[float]) -> Api:
    """Calls to it that give up soon."""
    return Api(Fixed(server.url), patience=QUICK, pause=pauses.append)


@pytest.mark.parametrize(
    ("status", "error", "tries"),
    [
        pytest.param(400, BadRequest, 1, id="400 is our fault"),
        pytest.param(401, Forbidden, 1, id="401 with no other credential is forbidden"),
        pytest.param(404, Missing, 1, id="404 is missing"),
        pytest.param(405, BadRequest, 1, id="405 is our fault"),
        pytest.param(409, Conflict, 1, id="409 is for the caller to read again"),
        pytest.param(410, Expired, 1, id="410 begins the list again"),
        pytest.param(422, BadRequest, 1, id="422 is our fault"),
        pytest.param(500, Unavailable, 3, id="500 is tried three times"),
        pytest.param(503, Unavailable, 3, id="503 is tried three times"),
        pytest.param(504, Unavailable, 3, id="504 is tried three times"),
        pytest.param(302, Unavailable, 3, id="a redirect is not followed, and no answer"),
        pytest.param("timeout", Unavailable, 3, id="silence is unavailable"),
        pytest.param("reset", Unavailable, 3, id="a reset is unavailable"),
        pytest.param("cut", Unavailable, 3, id="a body cut short is unavailable"),
        pytest.param("truncated", Unavailable, 3, id="half a JSON is unavailable"),
        pytest.param("not json", Unavailable, 3, id="a sign-in page is unavailable"),
        pytest.param("wrong types", Unavailable, 3, id="wrong types are unavailable"),
        pytest.param("endless", Unavailable, 3, id="a body that never ends is unavailable"),
    ],
)
def test_each_end_of_a_call_is_an_error_of_the_tree(
    server: ApiServer, api: Api, status: int | str, error: type[PilotlightError], tries: int
) -> None:
    """It raises that error in one line that names the call, after so many tries."""
    server.fail(status, times=9)
    with pytest.raises(error) as caught:
        api.get("/api/v1/pods", POD_LIST)
    assert len(server.requests) == tries
    assert "/api/v1/pods" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [500, "reset", "cut", "truncated", "wrong types", "endless"])
def test_what_passes_is_got_over(server: ApiServer, api: Api, kind: int | str) -> None:
    """One fault, and the second try has the whole answer."""
    server.fail(kind)
    assert len(Reads(api, Policy(version=1)).waiting()) == 11


@pytest.mark.parametrize(
    ("after", "waited", "told"),
    [
        pytest.param("1", [1.0, 1.0], 1.0, id="a short Retry-After is kept to"),
        pytest.param("30", [], 30.0, id="a long one is the caller's"),
        pytest.param("", [], 5.0, id="without one the caller comes back in five seconds"),
        pytest.param("Fri, 20 Nov 2026 12:00:00 GMT", [], 5.0, id="a date is no number of seconds"),
    ],
)
def test_throttling_says_when_to_come_back(
    server: ApiServer, api: Api, pauses: list[float], after: str, waited: list[float], told: float
) -> None:
    """429 is waited for within bounds, and otherwise handed on with its time."""
    server.fail(429, times=9, after=after)
    with pytest.raises(Throttled) as caught:
        api.get("/api/v1/pods", NOTHING)
    assert (pauses, caught.value.after_s) == (waited, told)


NODES = "/api/v1/nodes"


def test_a_right_that_is_not_granted_is_believed_of_a_server_that_knows_its_roles(server: ApiServer, api: Api) -> None:
    """403 of a server that answers about rights is Forbidden at once, asked twice and without a pause."""
    server.allow = lambda review: False
    with pytest.raises(Forbidden):
        api.get(NODES, NOTHING)
    assert server.lines() == [f"GET {NODES}", f"POST {REVIEWS}", f"GET {NODES}"]


def test_a_server_that_starts_refuses_nobody(server: ApiServer, api: Api) -> None:
    """403 of a server that has not read its roles is Unavailable: whoever asks comes back."""
    server.allow, server.ready = lambda review: False, False
    with pytest.raises(Unavailable, match="still starting"):
        api.get(NODES, NOTHING)
    assert server.lines(NODES) == [f"GET {NODES}"] * 3


@pytest.mark.parametrize("becomes", ["ready", "ready in between"])
def test_a_server_that_has_started_is_asked_again(server: ApiServer, api: Api, becomes: str) -> None:
    """Once it has read its roles the same call goes through, also where that was between 403 and the question."""
    server.allow, server.ready = lambda review: False, False

    def start() -> None:
        server.allow, server.ready = lambda review: True, True

    if becomes == "ready in between":
        server.before(REVIEWS, start)
    else:
        server.before(REVIEWS, lambda: server.before(NODES, start))
    api.get(NODES, NOTHING)


@pytest.mark.parametrize("ready", [True, False])
def test_a_change_that_a_server_refuses_is_believed_once_it_knows_its_roles(
    server: ApiServer, api: Api, ready: bool
) -> None:
    """403 of one that still starts says nothing of rights, and that nothing was done: the change is sent once."""
    server.allow, server.ready = lambda review: False, ready
    with pytest.raises(Forbidden if ready else Unavailable, match="403") as caught:
        api.change("DELETE", f"{NODES}/a", None, lambda: None)
    assert not isinstance(caught.value, Unsure)
    assert ("still starting" in str(caught.value)) is not ready
    assert server.lines("DELETE") == [f"DELETE {NODES}/a"]


def test_nobody_there_is_unavailable(pauses: list[float]) -> None:
    """A server that takes no connection."""
    with api_server() as gone:
        url = gone.url
    with pytest.raises(Unavailable):
        Api(Fixed(url), patience=QUICK, pause=pauses.append).get("/api/v1/pods", NOTHING)
    assert len(pauses) == 2


def test_a_head_that_drips_is_unavailable(pauses: list[float]) -> None:
    """A byte at a time is no silence: the time of all tries ends the call."""

    def drips(line: Line) -> None:
        line.hear()
        line.drip(b"HTTP/1.1 200 OK\r\nX-Long: a")

    with talking(drips) as odd, pytest.raises(Unavailable, match="timed out"):
        Api(Fixed(odd.url), patience=QUICK, pause=pauses.append).get("/api/v1/pods", NOTHING)


def test_an_expired_token_is_renewed_once(server: ApiServer) -> None:
    """401 asks the source for another token, which is shown at once."""
    server.tokens = {"second"}
    source = Fixed(server.url, "first", "second")
    api = Api(source, patience=QUICK)
    api.get("/api/v1/pods", NOTHING)
    assert (source.renewed, len(server.requests)) == (1, 2)


def test_a_token_that_stays_refused_is_forbidden(server: ApiServer) -> None:
    """Two refused tokens are enough: it is not tried for ever."""
    server.tokens = {"another"}
    source = Fixed(server.url, "first", "second", "third")
    with pytest.raises(Forbidden, match="401"):
        Api(source, patience=QUICK, pause=lambda _: None).get("/api/v1/pods", NOTHING)
    assert len(server.requests) == 2


def test_a_missing_right_names_itself(server: ApiServer, api: Api) -> None:
    """403 says who may not do what, and where the right is granted."""
    server.allow = lambda review: review != Review("list", "", "pods")
    with pytest.raises(Forbidden, match=r"cannot list resource \"pods\".*pilotlight connect"):
        api.get("/api/v1/pods", NOTHING)


@pytest.mark.parametrize(
    ("status", "after_s"),
    [
        pytest.param({"disruptionsAllowed": 0}, 5, id="it allows none: with no time of its own"),
        pytest.param({}, 10, id="its controller has not counted yet: in ten seconds"),
    ],
)
def test_a_budget_that_forbids_is_busy_not_throttled(
    server: ApiServer, api: Api, status: dict[str, int], after_s: float
) -> None:
    """The 429 of an eviction names a disruption budget: nothing is retried, and its time is kept."""
    pod = {"kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": status,
    }
    server.add(pod, budget)
    with pytest.raises(Busy) as caught:
        api.ask("POST", "/api/v1/namespaces/default/pods/web/eviction", NOTHING, {})
    assert caught.value.after_s == after_s
    assert len(server.lines("eviction")) == 1


@pytest.mark.parametrize("address", ["http://api.example.com", "ftp://127.0.0.1", "api.example.com", ""])
def test_no_credential_travels_in_the_clear(address: str) -> None:
    """Only https, or http to this machine."""
    with pytest.raises(BadInput, match="use https://"):
        Access(server=address, token="planted")


@pytest.mark.parametrize("kind", [401, 403, 500, 302, "cut", "not json", "reset"])
def test_no_secret_shows(
    server: ApiServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], kind: int | str
) -> None:
    """Neither errors, nor the log down to DEBUG, nor a value's own text shows what was shown to the server."""
    secret = "planted-7f3a9c"
    source = Fixed(server.url, secret)
    server.fail(kind, times=9)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(PilotlightError) as caught:
        Api(source, patience=QUICK, pause=lambda _: None).get("/api/v1/pods", NOTHING)
    assert server.requests[0].headers["Authorization"] == f"Bearer {secret}"
    out = capfd.readouterr()
    told = (repr(source.access()), pretty_repr(source.access()))
    for text in (str(caught.value), repr(caught.value), caplog.text, out.out, out.err, *told):
        assert secret not in text


def test_an_error_that_repeats_a_secret_is_masked(server: ApiServer) -> None:
    """Whoever answers may quote what it was shown; the error does not."""
    secret = "planted-7f3a9c"
    with pytest.raises(Missing) as caught:
        Api(Fixed(server.url, secret), patience=QUICK).get(f"/api/v1/namespaces/x/pods/{secret}", NOTHING)
    assert secret not in str(caught.value)


def test_a_list_whose_pages_expire_is_begun_again(server: ApiServer, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """410 in the middle: the list is read from its start, and every pod is there once."""
    monkeypatch.setattr("pilotlight.adapters.cluster.kubernetes.listing.PAGE", 4)
    monkeypatch.setattr("pilotlight.adapters.cluster.kubernetes.listing.MOST", 4)
    seen: list[int] = []

    def expire() -> None:
        seen.append(1)
        if len(seen) == 3:
            server.expire_pages()

    server.before("GET /api/v1/pods", expire, times=99)
    pods = Reads(api, Policy(version=1)).waiting()
    names = [pod.name for pod in pods]
    assert len(names) == len(set(names)) == 11
    assert len(server.requests) == 6


def test_a_list_that_never_holds_still_is_unavailable(
    server: ApiServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After three beginnings it is left for later."""
    monkeypatch.setattr("pilotlight.adapters.cluster.kubernetes.listing.PAGE", 4)
    monkeypatch.setattr("pilotlight.adapters.cluster.kubernetes.listing.MOST", 4)
    server.before("GET /api/v1/pods", server.expire_pages, times=99)
    with pytest.raises(Expired):
        Reads(api, Policy(version=1)).waiting()
    assert len(server.requests) == 6


def test_a_kind_that_is_not_served_is_missing(server: ApiServer, api: Api) -> None:
    """The plain-text 404 of a server without that CRD."""
    with pytest.raises(Missing, match="404 page not found"):
        api.get("/apis/scheduling.volcano.sh/v1beta1/podgroups", msgspec.json.Decoder(dict))
