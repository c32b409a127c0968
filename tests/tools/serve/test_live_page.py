"""The live page: who may see it, what it says, and how it looks and is used in a browser."""

import json
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from live_crowd import crowd
from live_site import HOSTILE, App, Site, busy
from stage import Stage
from werkzeug.test import Client

from chromium import Chromium, Page
from page_rules import ACCESSIBLE, LAYOUT, axe
from pilotlight.facts.limits.routes import Caller
from pilotlight.flow.records import brake_records
from pilotlight.tools.serve import request_gate
from pilotlight.tools.serve.live import live_stream
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
    """A pod that is named as markup is shown as written, and its command, once it is opened, is quoted for a shell."""
    page.run("for (const one of document.querySelectorAll('#waits details')) one.open = true")
    page.until("!!document.querySelector('#waits .copy')")
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


def test_a_decision_opens_in_place_with_options_and_prices(page: Page) -> None:
    """A purchase: the offering that was chosen, what it costs, what else there was, and the command that says all."""
    page.run("document.getElementById('older').hidden || document.getElementById('older').click()")
    page.run(
        "[...document.querySelectorAll('#log details')]"
        ".find((one) => one.textContent.includes('eight/eight')).open = true"
    )
    page.until("!!document.querySelector('#log .options .taken')")
    said = page.run("document.querySelector('#log .options .taken').innerText")
    assert "/on-demand" in said
    assert "$" in said
    assert page.run("document.querySelectorAll('#log .copy').length") == 1
    page.run("document.querySelector('#log details[open]').open = false")


def test_dollars_lead(page: Page) -> None:
    """Today, the month, what the budget has left and how the month ends come first, then waits; teams add up."""
    figures = "[...document.querySelectorAll('.glance dd')].map((one) => one.id)"
    assert page.run(figures) == ["today", "month", "left", "likely", "rate", "waitnow", "p95"]
    assert all(page.run(f"document.getElementById('{one}').innerText").startswith("$") for one in ("today", "left"))
    spent = page.run("seen.money.teams.reduce((sum, one) => sum + one.month, 0)")
    assert spent == pytest.approx(page.run("seen.money.month"))


def test_what_is_filtered_stands_in_the_address(page: Page) -> None:
    """A team, a pool and a state are kept in the hash; whoever opens it sees the same; all is shown again."""
    shown = "[...document.querySelectorAll('.tile:not(.out)')].map((one) => seen.nodes[one.dataset.node].pool)"
    everything = page.run(shown)
    page.run("location.hash = '#pool=eight&team=vision'")
    page.until("document.getElementById('f-pool').value === 'eight'")
    assert set(page.run(shown)) == {"eight"}
    page.run(
        "document.getElementById('f-state').value = 'idle';"
        "document.getElementById('f-state').dispatchEvent(new Event('change'))"
    )
    assert page.run("location.hash") == "#team=vision&pool=eight&state=idle"
    page.run("document.getElementById('clear').click()")
    assert (page.run("location.hash"), page.run(shown)) == ("", everything)


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
    asked = {one.removeprefix(served.open).partition("?")[0] for one in page.asked}
    assert asked <= {"", "live", "decision"}
    assert page.complaints == []


SCREENS, PHONE = 3, (390, 844)


@pytest.fixture(scope="module")
def crowded(chromium: Chromium) -> Iterator[Page]:
    """A busy cluster in mode ``advise`` on a phone."""
    stop = threading.Event()
    pages = live_stream.pages(App(crowd()), stop=stop)  # type: ignore[arg-type]
    with serving(request_gate.guard_paths(pages, {})) as port, chromium.page(*PHONE) as page:
        page.open(f"http://127.0.0.1:{port}/")
        page.until("!document.getElementById('all').hidden")
        yield page
        stop.set()


def test_a_phone_shows_a_busy_cluster_in_three_screens(crowded: Page) -> None:
    """60 nodes, 80 pods that wait, five teams and three budgets."""
    crowded.looks(*PHONE)
    assert crowded.run("[Object.keys(seen.nodes).length >= 60, seen.money.budgets.length]") == [True, 3]
    assert crowded.run("document.getElementById('waitnow').innerText") == "80"
    assert crowded.run("document.documentElement.scrollHeight") <= SCREENS * PHONE[1]


def test_advice_is_shouted(crowded: Page) -> None:
    """The mode, beside the cluster's name, in the title and in a band of its own."""
    assert crowded.run("document.getElementById('advised').innerText").startswith("ADVISE")
    assert crowded.run("document.getElementById('mode').innerText") == "MODE ADVISE"
    assert "ADVISE" in crowded.run("document.title")
    assert "prod-eu-1" in crowded.run("document.querySelector('header').innerText")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_many_nodes_are_groups_that_open(crowded: Page, dark: bool) -> None:
    """Beyond 30 nodes a pool is its states with numbers; what is opened can be read, and axe-core finds nothing."""
    tiles = "[...document.querySelectorAll('.tile')].filter((one) => one.checkVisibility()).length"
    crowded.run("for (const one of document.querySelectorAll('.bunch, #log details')) one.open = false")
    assert crowded.run(tiles) == 0
    crowded.run(
        "for (const one of document.querySelectorAll('.bunch')) one.open = true;"
        "document.querySelector('#log details').open = true"
    )
    assert crowded.run(tiles) >= 60
    crowded.until("!!document.querySelector('#log .options')")
    crowded.run(f"{axe()}; 0")
    for width in (390, 1400):
        crowded.looks(width, 900, dark=dark)
        assert crowded.run(LAYOUT) == []
        assert crowded.run(ACCESSIBLE) == []


def test_a_page_with_nothing_yet_says_so(chromium: Chromium) -> None:
    """No node, no wait, no budget: each says it, and how to add a budget is one press away."""
    stop = threading.Event()
    pages = live_stream.pages(App(Site(Stage().deps)), stop=stop)  # type: ignore[arg-type]
    with serving(request_gate.guard_paths(pages, {})) as port, chromium.page(*PHONE) as page:
        page.open(f"http://127.0.0.1:{port}/")
        page.until("!document.getElementById('all').hidden")
        said = page.run("document.getElementById('all').innerText")
        for words in ("no budget: add one", "No node is lit", "every GPU pod has a node", "No decision yet"):
            assert words in said
        assert page.run("document.querySelector('#left button').dataset.copy") == "budgets: [{name: month, usd: 1000}]"
        assert page.run(LAYOUT) == []
        page.run("seen.money.at_once = 1; document.getElementById('left').replaceChildren(); draw.money(); 1")
        assert "no budget of a month's dollars: add one" in page.run("document.getElementById('all').innerText")
        for count, things in ((0, ["GPUs paid for", "pods waiting now"]), (1, ["GPU paid for", "pod waiting now"])):
            page.run(f"seen.paid = {count}; seen.waiting = [{{pods: {count}, first: 'a'}}]; draw.paid(); waits(); 1")
            assert page.run("['paid-of', 'waitnow-of'].map((id) => document.getElementById(id).innerText)") == things
        page.run("seen.unpriced = seen.money.unpriced = 1; draw.paid(); draw.money(); 1")
        labels = page.run(
            "['today', 'month', 'likely', 'rate'].map((id) => document.getElementById(id + '-of').innerText)"
        )
        assert all(label.lower().endswith(", at least") for label in labels), labels
        record = "{before: 1, after: 2, unpriced_before: 1, trigger: 't', groups: [], calls: [], nodes: [], held: []}"
        opened = page.run(f"told({record})[0].textContent")
        assert opened.startswith("at least $1.00/h before, $2.00/h after")
        stop.set()


def test_a_server_that_is_gone_is_said_and_comes_back(chromium: Chromium) -> None:
    """The page keeps what it showed, says of when that is and what to do, and goes on once there is an answer."""
    stop, app = threading.Event(), App(busy())
    with chromium.page() as page:
        with serving(request_gate.guard_paths(live_stream.pages(app, stop=stop), {})) as port:  # type: ignore[arg-type]
            page.open(f"http://127.0.0.1:{port}/")
            page.until("!document.getElementById('all').hidden")
            stop.set()
        page.until("!document.getElementById('gone').hidden")
        assert "pilotlight serve" in page.run("document.getElementById('gone').innerText")
        assert page.run("document.querySelectorAll('.tile').length") > 0
        assert page.run(LAYOUT) == []
        with serving(request_gate.guard_paths(live_stream.pages(app), {}), at=port):  # type: ignore[arg-type]
            page.until(
                "document.getElementById('gone').hidden && document.getElementById('link').innerText.startsWith('live')"
            )


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
        wrong = "document.getElementById('refused').textContent.startsWith('The token was refused')"
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
