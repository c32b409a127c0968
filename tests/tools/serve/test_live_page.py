"""The live page: who may see it, what it says, and how it looks and is used in a browser."""

import json
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from live_site import HOSTILE, App, Site, busy
from werkzeug.test import Client

from chromium import Chromium, Page
from page_rules import ACCESSIBLE, LAYOUT, axe
from pilotlight.facts.limits.routes import Caller
from pilotlight.flow.records import brake_records
from pilotlight.tools.serve import live_stream, request_gate
from serving import serving

READER, SENDER = "a-token-that-only-reads", "a-token-that-only-sends"
CALLERS = {"reader": Caller(token=READER, roles=("read",)), "sender": Caller(token=SENDER, roles=("send",))}
WIDTHS = (400, 900, 1600)


class Served(NamedTuple):
    """A page that is served: its addresses, without and with tokens, and the cluster that it shows."""

    open: str
    closed: str
    site: Site


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Two doors to one busy cluster."""
    site, stop = busy(), threading.Event()
    pages = live_stream.pages(App(site), stop=stop)  # type: ignore[arg-type]
    with (
        serving(request_gate.guard_paths(pages, {})) as open_,
        serving(request_gate.guard_paths(pages, CALLERS)) as closed,
    ):
        yield Served(f"http://127.0.0.1:{open_}/", f"http://127.0.0.1:{closed}/", site)
        stop.set()


@pytest.fixture(scope="module")
def page(chromium: Chromium, served: Served) -> Iterator[Page]:
    """The page, open, with all that it shows."""
    with chromium.page() as page:
        page.open(served.open)
        page.until("!document.getElementById('all').hidden")
        yield page


@pytest.fixture(scope="module")
def site() -> Site:
    """The cluster for tests without a browser."""
    return busy()


def client(site: Site, callers: dict[str, Caller] | None = None) -> Client:
    """Whoever asks, at a door of its own."""
    return Client(request_gate.guard_paths(live_stream.pages(App(site)), callers or {}))  # type: ignore[arg-type]


def first(asked: Client) -> dict[str, Any]:
    """What the first event says of the cluster."""
    answer = asked.get("/live", headers={"Host": "127.0.0.1"})
    events = iter(answer.iter_encoded())
    assert next(events).startswith(b"retry: ")
    found: dict[str, Any] = json.loads(next(events).removeprefix(b"event: all\ndata: "))
    answer.close()
    return found


def test_the_page_itself_is_for_anybody_and_holds_no_figure(site: Site) -> None:
    """Its policy names the script and the style that are in it, and lets it ask nobody but its server."""
    answer = client(site, CALLERS).get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert answer.status_code == 200
    assert "unsafe" not in policy
    assert [part in policy for part in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'")] == [
        True
    ] * 3
    assert "finetune" not in answer.text


@pytest.mark.parametrize(
    ("token", "status"),
    [
        pytest.param(READER, 200, id="who may read"),
        pytest.param(SENDER, 403, id="who may only send"),
        pytest.param("", 401, id="nobody we know"),
    ],
)
def test_the_cluster_is_shown_to_those_who_may_read(site: Site, token: str, status: int) -> None:
    """Pods, nodes and dollars are told to the role read alone."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = client(site, CALLERS).get("/live", headers=headers)
    assert answer.status_code == status
    assert answer.headers["Content-Type"].startswith("text/event-stream" if status == 200 else "application/json")
    answer.close()


@pytest.mark.parametrize("whose", ["cross-site", "same-site"])
def test_a_page_of_another_site_gets_nothing(site: Site, whose: str) -> None:
    """Without tokens a browser on this machine could be made to ask: it says for whom."""
    headers = {"Host": "127.0.0.1", "Sec-Fetch-Site": whose}
    assert client(site).get("/live", headers=headers).status_code == 403


def test_a_cluster_that_is_not_there_is_said(site: Site) -> None:
    """The answer names those that are, and nothing of what was asked for."""
    answer = client(site).get(f"/live?cluster={HOSTILE}", headers={"Host": "127.0.0.1"})
    assert (answer.status_code, answer.json) == (404, {"error": "no cluster of that name; there are c"})


def test_who_comes_when_all_streams_are_taken_is_answered_once(site: Site) -> None:
    """The answer ends and says in how long to ask again; a stream that is left makes room."""
    asked = client(site)
    held = [asked.get("/live", headers={"Host": "127.0.0.1"}) for _ in range(live_stream.STREAMS)]
    events = list(asked.get("/live", headers={"Host": "127.0.0.1"}).iter_encoded())
    assert [event.partition(b" ")[0] for event in events] == [b"retry:", b"event:"]
    held[0].close()
    again = iter(asked.get("/live", headers={"Host": "127.0.0.1"}).iter_encoded())
    assert [next(again).partition(b"\n")[0] for _ in range(3)][1:] == [b"event: all", b": nothing new"]
    for one in held:
        one.close()


def test_the_first_event_has_everything(site: Site) -> None:
    """GPUs, dollars, nodes by what is on them, waits, what needs a person with its command, pauses and decisions."""
    found = first(client(site))
    nodes, money = found["nodes"], found["money"]
    assert (found["paid"], found["used"], found["booting"]) == (13, 10, 1)
    assert [tile["pods"] for tile in nodes.values() if tile["pool"] == "eight"] == [["ml/finetune, 6 GPUs"]]
    assert money["today"] == money["month"] > 70
    assert [line["budget"] for line in money["budgets"]] == ["all", "research"]
    todo, paused, said = found["todo"], found["paused"], found["decisions"]
    assert todo[0]["command"].startswith("pilotlight approve ")
    assert [one["command"] for one in paused] == ["pilotlight resume --pool spot"]
    assert said[0]["did"] == ["asked pool one for 1 x one/one/on-demand"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_everything_can_be_read_at_every_width(page: Page, width: int, dark: bool) -> None:
    """No label is cut or under 11 px, and nothing is wider than the window."""
    page.looks(width, 900, dark=dark)
    assert page.run(LAYOUT) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_screen_reader_can_use_it(page: Page, dark: bool) -> None:
    """axe-core finds nothing, with a node chosen, at a phone's width and at a wide one."""
    script = axe()
    for width in (400, 1600):
        page.looks(width, 900, dark=dark)
        page.run(f"{script}; 0")
        page.run("document.querySelector('.tile[aria-pressed=false]').click()")
        assert page.run(ACCESSIBLE) == []


def test_names_stay_names(page: Page) -> None:
    """A pod that is named as markup is shown as written, and its command is quoted for a shell."""
    assert page.run("document.querySelectorAll('main img').length") == 0
    assert f"ml/{HOSTILE}" in page.run("document.getElementById('waits').textContent")
    assert f"pilotlight why 'ml/{HOSTILE}'" in page.run("document.getElementById('waits').textContent")


def test_keys_move_from_node_to_node(page: Page) -> None:
    """One stop of Tab a pool; arrows go on, and Enter says what is on a node."""
    page.run("document.querySelectorAll('.tiles')[1].querySelector('[tabindex=\"0\"]').focus()")
    page.press("ArrowRight")
    name = page.run("document.activeElement.dataset.node")
    page.press("Enter", "\r")
    page.until(f"document.querySelector('#detail h3')?.textContent === {name!r}")
    assert page.run("document.querySelectorAll('.tiles')[1].querySelectorAll('[tabindex=\"0\"]').length") == 1


def test_what_happens_comes_by_itself(page: Page, served: Served) -> None:
    """A pause that somebody takes back goes from the page, and another comes, with nothing reloaded."""
    deps = served.site.deps
    brake_records.pause(deps.state, "c", "", "month end", deps.state.now(), "grace")
    page.until("document.getElementById('paused').textContent.includes('all pools since')")
    assert brake_records.resume(deps.state, "c", "")
    page.until("!document.getElementById('paused').textContent.includes('all pools since')")
    assert page.asked.count(served.open) == 1


def test_it_asks_nobody_else_and_complains_of_nothing(page: Page, served: Served) -> None:
    """After all of that: no request to another address, no error in the console, nothing that its policy forbade."""
    assert {asked.removeprefix(served.open) for asked in page.asked} <= {"", "live"}
    assert page.complaints == []


def test_an_alerts_link_leads_to_its_decision(chromium: Chromium, served: Served) -> None:
    """The command that explains it is there to copy, quoted whatever the link says."""
    with chromium.page(400) as page:
        page.open(f"{served.open}?why=17-aa%20%3Cimg%3E")
        page.until("!document.getElementById('led').hidden")
        assert page.run("document.querySelector('#asked code').textContent") == "pilotlight why '17-aa <img>'"
        assert page.run(LAYOUT) == []


def test_a_token_opens_it_and_is_forgotten_when_asked(chromium: Chromium, served: Served) -> None:
    """It asks for one, says that a wrong one is wrong, keeps the right one in the tab, and forgets it."""
    with chromium.page(400) as page:
        page.open(served.closed)
        page.until("!document.getElementById('door').hidden")
        assert page.run(LAYOUT) == []
        wrong = "document.getElementById('refused').textContent.startsWith('Not with this token')"
        for token, until in ((SENDER, wrong), (READER, "!document.getElementById('all').hidden")):
            page.run("document.getElementById('token').focus()")
            page.write(token)
            page.press("Enter", "\r")
            page.until(until)
        assert page.run("[sessionStorage.length, localStorage.getItem('pilotlight-token'), document.cookie]") == [
            1,
            None,
            "",
        ]
        page.run("document.getElementById('forget').click()")
        page.until("!document.getElementById('door').hidden && sessionStorage.length === 0")
        assert not any(READER in asked for asked in page.asked)
