"""The page that an alert's link opens: what it shows, who may acknowledge by it, and that nothing else does."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from werkzeug.test import Client, TestResponse

from chromium import Chromium
from page_rules import ACCESSIBLE, LAYOUT, axe
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.alerts.alert_routing import link_signature
from pilotlight.facts.limits.routes import Caller
from pilotlight.facts.messages import Alert
from pilotlight.flow.delivery.desk import Desk, ack_name, acknowledged_by
from pilotlight.flow.delivery.fan_out import fan_out
from pilotlight.settings import Settings
from pilotlight.tools.serve import own_pages, request_gate
from pilotlight.wiring import App, app
from pilotlight.world.world_clock import VirtualClock
from serving import serving

DUTY, READER, SENDER, KEY, OLD = (f"{name}-token-0123456789" for name in ("duty", "reader", "sender", "key", "old"))
CALLERS = {
    "duty": Caller(token=DUTY, roles=("acknowledge",)),
    "reader": Caller(token=READER, roles=("read",)),
    "sender": Caller(token=SENDER),
    "links": Caller(token=KEY, roles=("acknowledge",), by="link"),
    "links-before": Caller(token=OLD, roles=("acknowledge",), by="link"),
}
AS_DUTY = {"Authorization": f"Bearer {DUTY}"}
POLICY = "version: 1\nalerts: {page: 'https://p.example', channels: {ops: {kind: console}, quiet: {kind: console}}}"
MARKUP = "<img src=x onerror=alert(1)> is stuck"


class Told:
    """A channel that keeps what it was told."""

    def __init__(self) -> None:
        self.links: list[dict[str, str]] = []

    def deliver(self, alert: Alert) -> str:
        """Keep its links."""
        self.links.append(dict(alert.links))
        return "1"


class House(NamedTuple):
    """A deployment that told one alert: its name in links, and the link that people got."""

    wired: App
    alert: Alert
    link: str

    @property
    def name(self) -> str:
        """The alert, as a link names it."""
        return ack_name(self.alert)

    @property
    def by(self) -> str:
        """Who sees to it."""
        return acknowledged_by(self.wired.alerts, self.alert)

    def ask(self, method: str, shown: dict[str, str], callers: dict[str, Caller] = CALLERS) -> TestResponse:
        """Ask for the alert at its door, or acknowledge it as ann."""
        client = Client(request_gate.guard_paths(own_pages.pages(self.wired), callers))
        body: dict[str, Any] = {"json": {"by": "ann"}} if method == "POST" else {}
        named = {"Host": "127.0.0.1", **shown}
        return client.open(f"/alert?alert={self.name}", method=method, headers=named, **body)


def one(fingerprint: str = "quota/t4", **fields: Any) -> Alert:
    """A warning."""
    given = {"kind": "quota", "severity": "warning", "what": MARKUP, "why": "no T4"} | fields
    return Alert(cluster="c", fingerprint=fingerprint, **given)


def told(clock: VirtualClock, **fields: Any) -> House:
    """A house in which a warning was told on both channels."""
    settings = Settings(outbox="memory:", callers=CALLERS)
    wired = app(settings, policy=read_policy(POLICY, "policy"), state=MemoryState(clock), clock=clock)
    channel = Told()
    desk = Desk(
        channels={"ops": channel, "quiet": channel},
        policy=wired.policy.alerts,
        state=wired.alerts,
        outbox=wired.outbox,
        link_key=settings.link_key,
    )
    alert = one(**fields)
    fan_out(desk, alert)
    return House(wired, alert, channel.links[0].get("acknowledge", ""))


def test_an_alerts_link_names_it_and_is_signed_behind_the_hash(clock: VirtualClock) -> None:
    """What a chat fetches has no signature: a browser keeps it to itself."""
    house = told(clock)
    assert house.link == f"https://p.example/ack?alert={house.name}#{link_signature(KEY, house.name)}"
    assert told(clock, severity="info", fingerprint="other").link == ""


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_a_chat_fetches_changes_nothing(clock: VirtualClock, method: str) -> None:
    """The page is one file without the alert in it, under a policy of its own; nobody has seen to the alert after."""
    house = told(clock)
    client = Client(request_gate.guard_paths(own_pages.pages(house.wired), CALLERS))
    answer = client.open(house.link.removeprefix("https://p.example"), method=method)
    assert answer.status_code == (200 if method == "GET" else 405)
    assert "stuck" not in answer.text
    assert house.ask("GET", AS_DUTY).status_code == 200
    assert house.by == ""


@pytest.mark.parametrize(
    ("shown", "read", "acknowledge"),
    [
        pytest.param({"Authorization": f"Bearer {DUTY}"}, 200, 200, id="who may acknowledge"),
        pytest.param({"Authorization": f"Bearer {READER}"}, 200, 403, id="who may read sees it and no more"),
        pytest.param({"Authorization": f"Bearer {SENDER}"}, 403, 403, id="who may send"),
        pytest.param({"Authorization": f"Bearer {KEY}"}, 401, 401, id="the key of links is no token"),
        pytest.param({"X-Pilotlight-Link": "ours"}, 200, 200, id="whoever has the link"),
        pytest.param({"X-Pilotlight-Link": "old"}, 200, 200, id="a link from before the key changed"),
        pytest.param({"X-Pilotlight-Link": "another"}, 401, 401, id="a link of another alert"),
        pytest.param({"X-Pilotlight-Link": "0" * 64}, 401, 401, id="a link that somebody made up"),
        pytest.param({}, 401, 401, id="nobody we know"),
        pytest.param(
            {"Authorization": f"Bearer {DUTY}", "Origin": "https://evil.example"}, 403, 403, id="a foreign page"
        ),
        pytest.param({"Authorization": f"Bearer {DUTY}", "Sec-Fetch-Site": "cross-site"}, 403, 403, id="a foreign tab"),
        pytest.param(
            {"Authorization": f"Bearer {DUTY}", "Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"},
            200,
            200,
            id="our own page",
        ),
    ],
)
def test_who_may_see_and_acknowledge_it(
    clock: VirtualClock, shown: dict[str, str], read: int, acknowledge: int
) -> None:
    """By the table of doors: a token of the role, or a link that was signed for this alert."""
    house = told(clock)
    links = {
        "ours": house.link.partition("#")[2],
        "old": link_signature(OLD, house.name),
        "another": link_signature(KEY, "c/1234"),
    }
    headers = {key: links.get(value, value) for key, value in shown.items()}
    assert (house.ask("GET", headers).status_code, house.by) == (read, "")
    assert house.ask("POST", headers).status_code == acknowledge
    assert house.by == ("ann" if acknowledge == 200 else "")


def test_a_link_opens_nothing_else(clock: VirtualClock) -> None:
    """Not the live page's stream, not the figures, though its key were given every role."""
    house = told(clock)
    callers = {"links": Caller(token=KEY, roles=("acknowledge", "read", "send"), by="link")}
    client = Client(request_gate.guard_paths(own_pages.pages(house.wired), callers))
    headers = {"X-Pilotlight-Link": link_signature(KEY, house.name)}
    assert [
        client.get(f"{path}?alert={house.name}", headers=headers).status_code for path in ("/live", "/metrics")
    ] == [403] * 2


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Host": "evil.example"}, 403),
    ],
    ids=["a program of this machine", "a foreign page", "a form", "a name bound to this machine"],
)
def test_without_tokens_this_machine_alone_acknowledges(
    clock: VirtualClock, headers: dict[str, str], status: int
) -> None:
    """As with every other path of serve on a laptop."""
    assert told(clock).ask("POST", headers, {}).status_code == status


def test_the_second_to_acknowledge_hears_who_was_first(clock: VirtualClock) -> None:
    """And what is over has nobody to see to it."""
    house = told(clock)
    assert [house.ask("POST", AS_DUTY).json for _ in range(2)] == [{"new": new, "by": "ann"} for new in (True, False)]
    found = house.ask("GET", AS_DUTY).json
    assert found is not None
    assert (found["by"], [line.partition(",")[0] for line in found["told"]]) == ("ann", ["ops: told", "quiet: told"])
    desk = Desk(channels={}, policy=house.wired.policy.alerts, state=house.wired.alerts, outbox=house.wired.outbox)
    clock.advance(clock.elapsed_s() + 1)
    fan_out(desk, one("gone", resolved=True))
    asked = [House(house.wired, one(name), "").ask("POST", AS_DUTY).status_code for name in ("gone", "never heard of")]
    assert asked == [409, 404]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, House]]:
    """A house that is served over HTTP: its address."""
    house = told(VirtualClock(datetime(2026, 11, 20, 12, tzinfo=UTC)))
    routes = request_gate.guard_paths(own_pages.pages(house.wired), CALLERS)
    with serving(routes) as port:
        yield f"http://127.0.0.1:{port}/", house


def test_a_phone_opens_it_and_acknowledges(chromium: Chromium, served: tuple[str, House]) -> None:
    """With a link's signature: one name and one button. Markup in an alert stays text; no request goes elsewhere."""
    at, house = served
    path = house.link.removeprefix("https://p.example/")
    with chromium.page(400) as page:
        page.open(at + path)
        page.until("!document.getElementById('act').hidden")
        for dark in (False, True):
            page.looks(400, 800, dark=dark)
            assert page.run(LAYOUT) == []
        assert MARKUP in page.run("document.getElementById('title').textContent")
        assert (page.run("document.querySelectorAll('img').length"), house.by) == (0, "")
        page.run("document.getElementById('by').focus()")
        page.write("ann")
        page.press("Enter", "\r")
        page.until("document.getElementById('done').textContent.includes('Seen to by ann')")
        assert house.by == "ann"
        assert page.complaints == []
        assert {asked.partition("?")[0] for asked in page.asked} == {f"{at}ack", f"{at}alert"}
        assert not any(link_signature(KEY, house.name) in asked for asked in page.asked[1:])


def test_a_screen_reader_can_use_it(chromium: Chromium, served: tuple[str, House]) -> None:
    """axe-core finds nothing where it asks for a token, nor where it shows the alert, in both colours."""
    at, house = served
    script, path = axe(), house.link.removeprefix("https://p.example/")
    for opened, shown in ((path.partition("#")[0], "door"), (path, "alert")):
        with chromium.page(400) as page:
            page.open(at + opened)
            page.until(f"!document.getElementById('{shown}').hidden")
            page.run(f"{script}; 0")
            for dark in (False, True):
                page.looks(400, 800, dark=dark)
                assert page.run(ACCESSIBLE) + page.run(LAYOUT) == []
