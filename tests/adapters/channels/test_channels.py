"""Channels against real local HTTP servers that answer as each provider does."""

import base64
import hmac
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight.adapters.channels.apprise import AppriseChannel
from pilotlight.adapters.channels.console import ConsoleChannel
from pilotlight.adapters.channels.discord_channel import DiscordChannel
from pilotlight.adapters.channels.pagerduty_channel import PagerDutyChannel
from pilotlight.adapters.channels.slack_channel import SlackBot, SlackChannel
from pilotlight.adapters.channels.teams_channel import TeamsChannel
from pilotlight.adapters.channels.telegram_channel import TelegramChannel
from pilotlight.adapters.channels.webhook import WebhookChannel
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.webhook_post import LONGEST_WAIT_S, refuse_private
from pilotlight.errors import BadInput, BadRequest, Forbidden, PilotlightError, Throttled, Unavailable, Unsure
from pilotlight.facts.messages import Alert
from pilotlight.ports.delivery import AlertChannel
from pilotlight.world.world_clock import VirtualClock

ALERT = Alert(
    cluster="c1",
    kind="capacity",
    severity="warning",
    fingerprint="f1",
    what="no T4 left",
    why="quota",
    next="ask for more",
)
SECRET = "s3cr3t-t0k3n"
KEY = "s3cr3tk3y"

Answer = tuple[int, dict[str, str], bytes] | None
"""Status, headers and body; None breaks the connection."""


class Receiver(ThreadingHTTPServer):
    """Answers what it was told to, in order, and keeps what came; at the end of its script it answers ``then``."""

    daemon_threads = True

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.then: Answer = (200, {}, b"ok")
        self.came: list[tuple[str, dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/hook?key={SECRET}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The JSON bodies that came."""
        return [json.loads(body) for _, _, body in self.came]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Keep the request and answer by the script."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        answer = self.server.script.pop(0) if self.server.script else self.server.then
        if answer is None:
            self.close_connection = True
            return
        self.send_response(answer[0])
        for name, value in answer[1].items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer[2])

    def log_message(self, *args: object) -> None:
        """Stay silent."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on a local port."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _hook(receiver: Receiver, clock: VirtualClock) -> AlertChannel:
    return WebhookChannel(receiver.url, clock, allow_private=True)


def _slack(receiver: Receiver, clock: VirtualClock) -> AlertChannel:
    return SlackChannel(receiver.url, clock, allow_private=True)


def _telegram(receiver: Receiver, clock: VirtualClock) -> AlertChannel:
    server = f"http://127.0.0.1:{receiver.server_port}"
    return TelegramChannel(SECRET, "-100", clock, MemoryState(clock), server=server, allow_private=True)


def _bot(receiver: Receiver, clock: VirtualClock) -> AlertChannel:
    server = f"http://127.0.0.1:{receiver.server_port}"
    return SlackBot(f"xoxb-{SECRET}", "C1", clock, server=server, allow_private=True)


def _pagerduty(receiver: Receiver, clock: VirtualClock) -> AlertChannel:
    server = f"http://127.0.0.1:{receiver.server_port}"
    return PagerDutyChannel(KEY, clock, server=server, allow_private=True)


def _teams(receiver: Receiver, clock: VirtualClock) -> AlertChannel:
    return TeamsChannel(receiver.url, clock, allow_private=True)


def _discord(receiver: Receiver, clock: VirtualClock) -> AlertChannel:
    return DiscordChannel(receiver.url, clock, allow_private=True)


EVERY = pytest.mark.parametrize(
    "made",
    [_hook, _slack, _bot, _telegram, _pagerduty, _teams, _discord],
    ids=["a web hook", "Slack", "a bot in Slack", "Telegram", "PagerDuty", "Teams", "Discord"],
)
Made = Callable[[Receiver, VirtualClock], AlertChannel]


def test_the_console_shows_what_cost_why_and_next() -> None:
    """An alert is a line with its severity and cluster, its sentences, its links and the fingerprint to ask by."""
    stream = io.StringIO()
    ConsoleChannel(stream).deliver(ALERT)
    linked = {"acknowledge": "https://home.example/ack?alert=c1/1"}
    over = msgspec.structs.replace(ALERT, usd_per_hour="12.24", usd="3", resolved=True, links=linked)
    ConsoleChannel(stream).deliver(over)
    assert stream.getvalue() == (
        "WARNING c1: no T4 left\n    why: quota\n    next: ask for more\n    alert: f1\n"
        "RESOLVED c1: no T4 left\n    cost: $12.24 an hour, $3.00 in all\n    why: quota\n    next: ask for more\n"
        "    acknowledge: https://home.example/ack?alert=c1/1\n    alert: f1\n"
    )


def test_a_web_hook_gets_a_cloudevent(receiver: Receiver, clock: VirtualClock) -> None:
    """The alert is posted whole as a structured CloudEvent under its fingerprint, to the URL's path and query."""
    receiver.then = (202, {"X-Request-Id": "r7"}, b"")
    assert _hook(receiver, clock).deliver(ALERT) == "r7"
    [(path, headers, body)] = receiver.came
    assert (path, headers["content-type"]) == (f"/hook?key={SECRET}", "application/cloudevents+json")
    event = json.loads(body)
    assert (event["type"], event["id"]) == ("dev.pilotlight.alert.v1", "f1")
    assert msgspec.convert(event["data"], Alert) == ALERT


@pytest.mark.parametrize("secret", ["plain words", "whsec_" + base64.b64encode(b"key").decode()])
def test_a_signed_web_hook_can_be_checked(receiver: Receiver, clock: VirtualClock, secret: str) -> None:
    """The signature is that of Standard Webhooks over id, time and body; the time is the delivery's."""
    WebhookChannel(receiver.url, clock, secret, allow_private=True).deliver(ALERT)
    [(_, headers, body)] = receiver.came
    at = headers["webhook-timestamp"]
    assert int(at) == clock.now().timestamp()
    key = b"key" if secret.startswith("whsec_") else secret.encode()
    made = hmac.digest(key, f"{headers['webhook-id']}.{at}.".encode() + body, "sha256")
    assert headers["webhook-signature"] == "v1," + base64.b64encode(made).decode()
    assert secret not in str(headers)


def test_slack_gets_blocks(receiver: Receiver, clock: VirtualClock) -> None:
    """The body has the text that notifications show, and blocks; Slack's request id is the proof."""
    receiver.then = (200, {"x-slack-req-id": "q1"}, b"ok")
    assert _slack(receiver, clock).deliver(ALERT) == "q1"
    [body] = receiver.bodies
    assert body["text"] == "WARNING: no T4 left"
    assert [block["type"] for block in body["blocks"]] == ["header", "section", "section", "section", "context"]


def test_slack_answers_of_the_contract(receiver: Receiver, clock: VirtualClock, shelf: Path) -> None:
    """Each recorded answer is what it is: taken, later with the time it names, or never, with Slack's own word."""
    said = json.loads((shelf / "contracts/alerts/slack_webhook_responses.json").read_text())
    outcomes = {}
    for name, answer in said.items():
        receiver.script = [(answer["status"], answer.get("headers", {}), answer["body"].encode())]
        outcomes[name] = _outcome(_slack(receiver, clock))
    assert outcomes["ok"] == ""
    assert outcomes["rate_limited"] == "Throttled 30: Slack at 127.0.0.1 answered 429"
    assert outcomes["bad_payload"].startswith("BadRequest: Slack at 127.0.0.1 answered 400; invalid_payload")
    assert outcomes["gone"].startswith("BadRequest: Slack at 127.0.0.1 answered 404; no_service")


def test_telegram_answers_of_the_contract(receiver: Receiver, clock: VirtualClock, shelf: Path) -> None:
    """Each recorded answer is what it is: taken, later with the time it names, moved, or never with the description."""
    said = json.loads((shelf / "contracts/alerts/telegram_responses.json").read_text())
    outcomes = {}
    for name in ("ok", "rate_limited", "blocked", "bad_markup"):
        receiver.script = [(said[name].get("error_code", 200), {}, json.dumps(said[name]).encode())]
        outcomes[name] = _outcome(_telegram(receiver, clock))
    assert outcomes["ok"] == "42"
    assert outcomes["rate_limited"] == "Throttled 35: Telegram at 127.0.0.1 answered 429"
    assert "bot was kicked" in outcomes["blocked"]
    assert "can't parse entities" in outcomes["bad_markup"]


def test_a_chat_that_moved_is_remembered(receiver: Receiver, clock: VirtualClock, shelf: Path) -> None:
    """The message goes to the new id at once, and so do later ones, of another process too."""
    said = json.loads((shelf / "contracts/alerts/telegram_responses.json").read_text())
    receiver.script = [(400, {}, json.dumps(said["migrated"]).encode())]
    receiver.then = (200, {}, json.dumps(said["ok"]).encode())
    state, server = MemoryState(clock), f"http://127.0.0.1:{receiver.server_port}"
    for _ in range(2):
        TelegramChannel(SECRET, "-100", clock, state, server=server, allow_private=True).deliver(ALERT)
    assert [body["chat_id"] for body in receiver.bodies] == [-100, -1001234567890, -1001234567890]


def test_what_follows_in_slack_goes_into_the_thread(receiver: Receiver, clock: VirtualClock) -> None:
    """A bot's proof is channel and first message; an end is shown in its thread, and in the channel too."""
    receiver.then = (200, {}, b'{"ok":true,"channel":"C9","ts":"17.1"}')
    bot = SlackBot(f"xoxb-{SECRET}", "C1", clock, server=receiver.url.partition("/hook")[0], allow_private=True)
    proof = bot.deliver(ALERT)
    receiver.then = (200, {}, b'{"ok":true,"channel":"C9","ts":"18.2"}')
    assert (proof, bot.follow(msgspec.structs.replace(ALERT, resolved=True), proof)) == ("C9/17.1", "C9/17.1")
    first, second = receiver.bodies
    assert "thread_ts" not in first
    assert [second[key] for key in ("channel", "thread_ts", "reply_broadcast")] == ["C9", "17.1", True]
    path, headers, _ = receiver.came[0]
    assert (path, headers["authorization"]) == ("/api/chat.postMessage", f"Bearer xoxb-{SECRET}")


@pytest.mark.parametrize(
    ("said", "error"),
    [("ratelimited", Unavailable), ("invalid_auth", Forbidden), ("channel_not_found", BadRequest)],
)
def test_slack_says_no_with_200(receiver: Receiver, clock: VirtualClock, said: str, error: type[Exception]) -> None:
    """Its word decides whether it is for later or for good, and is shown."""
    receiver.then = (200, {}, json.dumps({"ok": False, "error": said}).encode())
    with pytest.raises(error, match=said):
        _bot(receiver, clock).deliver(ALERT)


def test_pagerduty_gets_one_incident_a_fingerprint(receiver: Receiver, clock: VirtualClock) -> None:
    """What begins triggers it and what is over resolves it, under one key, which is the proof."""
    receiver.then = (202, {}, b'{"status":"success","message":"Event processed","dedup_key":"x"}')
    proof = _pagerduty(receiver, clock).deliver(ALERT)
    assert _pagerduty(receiver, clock).deliver(msgspec.structs.replace(ALERT, resolved=True)) == proof
    begun, over = receiver.bodies
    assert [body["event_action"] for body in (begun, over)] == ["trigger", "resolve"]
    assert begun["dedup_key"] == over["dedup_key"] == proof
    assert (begun["routing_key"], begun["payload"]["severity"]) == (KEY, "warning")
    assert begun["payload"]["summary"] == "WARNING: no T4 left"
    assert receiver.came[0][0] == "/v2/enqueue"


def test_teams_gets_an_adaptive_card(receiver: Receiver, clock: VirtualClock) -> None:
    """As the web hook of a workflow takes it: it answers 202 without a body."""
    receiver.then = (202, {"x-ms-workflow-run-id": "run7"}, b"")
    linked = msgspec.structs.replace(ALERT, links={"why": "https://x.de/?d=1"})
    assert _teams(receiver, clock).deliver(linked) == "run7"
    (body,) = receiver.bodies
    card = body["attachments"][0]["content"]
    assert (card["type"], card["body"][0]["inlines"][0]["text"]) == ("AdaptiveCard", "WARNING: no T4 left")
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "why", "url": "https://x.de/?d=1"}]


def test_discord_gets_an_embed_and_names_its_message(receiver: Receiver, clock: VirtualClock) -> None:
    """The message is asked for, so that its id is the proof; 429 says in its body when to come again."""
    receiver.then = (200, {}, b'{"id":"99","type":0}')
    assert _discord(receiver, clock).deliver(ALERT) == "99"
    assert receiver.came[0][0] == f"/hook?key={SECRET}&wait=true"
    (embed,) = receiver.bodies[0]["embeds"]
    assert embed["title"] == "WARNING\\: no T4 left"
    receiver.then = (429, {}, b'{"message":"You are being rate limited.","retry_after":0.75,"global":false}')
    assert _outcome(_discord(receiver, clock)).startswith("Throttled 0.75")


def _outcome(channel: AlertChannel) -> str:
    try:
        return channel.deliver(ALERT)
    except Throttled as error:
        return f"Throttled {error.after_s:g}: {error}"
    except PilotlightError as error:
        return f"{type(error).__name__}: {error}"


@EVERY
@pytest.mark.parametrize(
    ("answer", "error", "after_s"),
    [
        pytest.param((503, {}, b""), Unavailable, 5.0, id="an overloaded receiver"),
        pytest.param((429, {}, b""), Unavailable, 5.0, id="a receiver that names no time"),
        pytest.param((429, {"Retry-After": "3"}, b""), Throttled, 3.0, id="one that names seconds"),
        pytest.param((503, {"Retry-After": "Fri, 20 Nov 2026 12:00:07 GMT"}, b""), Throttled, 7.0, id="a date"),
        pytest.param((429, {"Retry-After": "soon"}, b""), Unavailable, 5.0, id="nonsense"),
        pytest.param((429, {"Retry-After": "9" * 500}, b""), Throttled, LONGEST_WAIT_S, id="years"),
        pytest.param(None, Unsure, 5.0, id="one that hangs up without an answer"),
    ],
)
def test_a_refusal_for_now_says_when_to_come_again(
    receiver: Receiver, clock: VirtualClock, made: Made, answer: Answer, error: type[Exception], after_s: float
) -> None:
    """One attempt, and an error for later with the pause that was asked for; it shows no secret."""
    receiver.script = [answer]
    with pytest.raises(error) as caught:
        made(receiver, clock).deliver(ALERT)
    assert len(receiver.came) == 1
    assert (type(caught.value), caught.value.after_s) == (error, after_s)  # type: ignore[attr-defined]
    assert SECRET not in str(caught.value)


@EVERY
@pytest.mark.parametrize(
    ("status", "error"),
    [
        pytest.param(400, BadRequest, id="a request it does not read"),
        pytest.param(403, Forbidden, id="a request it does not allow"),
        pytest.param(404, BadRequest, id="a hook that is not there"),
        pytest.param(410, BadRequest, id="a hook that is gone"),
        pytest.param(302, BadRequest, id="a hook that moved"),
    ],
)
def test_a_refusal_for_good_names_the_host_alone(
    receiver: Receiver, clock: VirtualClock, made: Made, status: int, error: type[Exception]
) -> None:
    """One attempt, and an error that names the host but not the secret; a redirect is not followed."""
    receiver.script = [(status, {"Location": "http://169.254.169.254/"}, SECRET.encode())]
    with pytest.raises(error, match=r"127\.0\.0\.1 answered") as caught:
        made(receiver, clock).deliver(ALERT)
    assert len(receiver.came) == 1
    assert SECRET not in str(caught.value)


@EVERY
def test_a_host_that_does_not_answer_is_for_later(clock: VirtualClock, made: Made) -> None:
    """Nobody at the port: it surely was not shown."""
    closed = Receiver()
    closed.server_close()
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1: Connection refused") as caught:
        made(closed, clock).deliver(ALERT)
    assert not isinstance(caught.value, Unsure)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "[fd00:ec2::254]", "10.1.2.3", "[::ffff:192.168.0.1]", "0"],
)
def test_a_url_that_leads_inside_is_refused(clock: VirtualClock, host: str) -> None:
    """Loopback, link-local, metadata and private addresses are no web hooks unless the policy allows it."""
    with pytest.raises(Forbidden, match="allow_private") as caught:
        WebhookChannel(f"http://{host}:9/{SECRET}", clock).deliver(ALERT)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "100.64.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "224.0.0.1",
        "fe80::1%eth0",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:ffff::1",
        "::10.0.0.1",
        "::169.254.169.254",
        "::ffff:0:127.0.0.1",
        "fec0::1",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "64:ff9b::a83f:8110",
    ],
)
def test_an_address_that_carries_an_inner_one_is_refused(address: str) -> None:
    """Shared, multicast and link-local ranges, and IPv6 that leads to inner IPv4."""
    with pytest.raises(Forbidden):
        refuse_private(address, "it")


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101", "168.63.129.17", "64:ff9b:2::1"])
def test_an_address_of_the_internet_is_not(address: str) -> None:
    """Public addresses pass."""
    refuse_private(address, "it")


def test_the_address_that_was_looked_at_is_the_one_connected_to(
    receiver: Receiver, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that answers otherwise the second time is not asked a second time."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: str, port: int, *rest: Any, **more: Any) -> list[Any]:
        if host == "127.0.0.1":
            return real(host, port, *rest, **more)
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if len(asked) == 1 else "10.0.0.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", rebinding)
    url = f"http://hooks.example.com:{receiver.server_port}/"
    WebhookChannel(url, clock, allow_private=True).deliver(ALERT)
    [(_, headers, _)] = receiver.came
    assert headers["host"] == f"hooks.example.com:{receiver.server_port}"
    assert asked == ["hooks.example.com"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3cret.example.com/x",
        "ftp://s3cret/x",
        "https://",
        "http://s3cret:port/",
        "http://[s3cret",
        "http://h/s3cret x",
    ],
)
@pytest.mark.parametrize("kind", [WebhookChannel, SlackChannel])
def test_a_url_that_is_none_is_refused_without_showing_it(
    clock: VirtualClock, kind: Callable[[str, VirtualClock], AlertChannel], url: str
) -> None:
    """What is no URL is bad input; the text may be a secret and is not repeated."""
    with pytest.raises(BadInput, match="https://") as caught:
        kind(url, clock)
    assert "s3cret" not in str(caught.value)


def test_a_token_that_is_none_is_refused_without_showing_it(clock: VirtualClock) -> None:
    """A bot's token with a path in it is bad input."""
    with pytest.raises(BadInput, match="BotFather") as caught:
        TelegramChannel("12:s3cret/../x", "1", clock, MemoryState(clock))
    assert "s3cret" not in str(caught.value)


def test_everything_else_goes_through_apprise(receiver: Receiver, capfd: pytest.CaptureFixture[str]) -> None:
    """An Apprise URL gets title and text; a refusal is for later; neither shows the URL's secret."""
    channel = AppriseChannel(f"json://127.0.0.1:{receiver.server_port}/{SECRET}", allow_private=True)
    channel.deliver(ALERT)
    [body] = receiver.bodies
    assert (body["title"], body["type"]) == ("WARNING: no T4 left", "warning")
    receiver.then = (500, {}, b"")
    with pytest.raises(Unavailable) as caught:
        channel.deliver(ALERT)
    assert SECRET not in str(caught.value) + "".join(capfd.readouterr())


def test_apprise_leads_nowhere_inside(receiver: Receiver) -> None:
    """An Apprise URL of a loopback host is refused unless the policy allows it; nonsense is bad input."""
    with pytest.raises(Forbidden, match="allow_private"):
        AppriseChannel(f"json://127.0.0.1:{receiver.server_port}/").deliver(ALERT)
    with pytest.raises(BadInput, match="Apprise URL"):
        AppriseChannel(f"nonsense-{SECRET}").deliver(ALERT)
    assert receiver.came == []


def _resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """A name server that answers so, one after the other, and then as it did last; the names it was asked for."""
    asked, real = list[str](), socket.getaddrinfo

    def look(host: Any, port: Any, *rest: Any, **more: Any) -> list[Any]:
        if host in ("127.0.0.1", None):
            return real(host, port, *rest, **more)
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(port or 0))) for address in found]

    monkeypatch.setattr("socket.getaddrinfo", look)
    return asked


@pytest.mark.parametrize("addresses", [["203.0.114.1", "127.0.0.1"], ["127.0.0.1", "203.0.114.1"]])
def test_every_address_of_a_name_is_looked_at(
    receiver: Receiver, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    """One inner address among others is enough, wherever it stands; nothing is sent to any of them."""
    _resolving(monkeypatch, addresses)
    url = f"hooks.example.com:{receiver.server_port}/"
    with pytest.raises(Forbidden, match="allow_private"):
        WebhookChannel(f"http://{url}", clock).deliver(ALERT)
    with pytest.raises(Forbidden, match="allow_private"):
        AppriseChannel(f"json://{url}").deliver(ALERT)
    assert receiver.came == []


def test_apprise_is_held_to_what_it_connects_to(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads outside when it is looked at, and inside when Apprise connects, is refused there."""
    asked = _resolving(monkeypatch, ["203.0.114.1"], ["127.0.0.1"])
    with pytest.raises(Forbidden, match="allow_private"):
        AppriseChannel(f"json://hooks.example.com:{receiver.server_port}/").deliver(ALERT)
    assert len(asked) >= 2
    assert receiver.came == []
    socket.create_connection(("127.0.0.1", receiver.server_port)).close()  # Others connect as before.


def test_apprise_follows_no_redirect(receiver: Receiver) -> None:
    """Where an answer sends it elsewhere it does not go, and the alert was not sent."""
    receiver.script = [(307, {"Location": f"http://127.0.0.1:{receiver.server_port}/elsewhere"}, b"")]
    with pytest.raises(Unavailable):
        AppriseChannel(f"json://127.0.0.1:{receiver.server_port}/?redirect=yes", allow_private=True).deliver(ALERT)
    assert len(receiver.came) == 1


def test_apprise_makes_no_connection_that_nobody_can_look_at() -> None:
    """A scheme that connects in threads of its own is refused unless the policy allows private addresses."""
    with pytest.raises(BadInput, match="allow_private"):
        AppriseChannel(f"xmpp://user:{SECRET}@example.com").deliver(ALERT)
