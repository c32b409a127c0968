"""Local HTTP servers that answer as Slack, Telegram, PagerDuty, Teams, Discord and a web hook's receiver do, and fail
in every way they can."""

import html
import json
import re
import select
import socket
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any, Literal

Kind = Literal["slack", "telegram", "webhook", "pagerduty", "teams", "discord"]

SECRET = "s3cr3t0fth3url"
SLOW_S = 2.5
"""Longer than the channels of a storm wait for an answer."""

LATER = ("429 with a time", "429 without one", "503", "reset before")
BREAKS = ("reset after", "slow")
"""The provider has taken the alert, and whoever sent it cannot know."""
NEVER = ("400", "404")


BARE = ("telegram", "pagerduty")
"""Whose path is the product's: what is named is the server."""

TAKES: dict[Kind, int] = {
    "slack": 200_000,
    "telegram": 30_000,
    "pagerduty": 512_000,
    "teams": 28_000,
    "discord": 25_000,
}
"""Bytes of a body that a provider takes; what else it limits is looked at in ``_within``."""


class Provider(ThreadingHTTPServer):
    """Takes alerts and counts what it took by fingerprint; ``broke`` are those whose sender never heard of it.

    ``times`` are the seconds of ``elapsed``, the clock of whoever sends, at which each was taken.

    A ``share`` of requests meets one of the ``faults``; at most ``slow`` of them are slow, which takes the wall's time.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, kind: Kind, rng: Random, share: float, faults: tuple[str, ...], slow: int) -> None:
        self.kind: Kind = kind
        self.took: Counter[str] = Counter()
        self.times: dict[str, list[float]] = defaultdict(list)
        self.elapsed: Callable[[], float] = lambda: 0.0
        self.broke: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self.sizes: dict[str, int] = {}
        self.too_large = 0
        self._rng, self._share, self._faults, self._slow = rng, share, faults, slow
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, *_: object) -> None:
        """A client that has gone is what was asked for."""

    @property
    def url(self) -> str:
        """Address as a policy's variable holds it: the server for Telegram, the whole URL for the others."""
        at = f"http://127.0.0.1:{self.server_port}"
        return at if self.kind in BARE else f"{at}/services/{SECRET}"

    def fate(self, body: dict[str, Any]) -> str:
        """Fate of a request, which is counted; empty where it is taken and answered."""
        fingerprint, size = _read(self.kind, body)
        with self._lock:
            self.too_large += not _within(self.kind, body)
            fault = self._rng.choice(self._faults) if self._rng.random() < self._share else ""
            if fault == "slow" and self.met["slow"] >= self._slow:
                fault = "reset after"
            self.met[fault or "taken"] += 1
            if not fault or fault in BREAKS:
                self.took[fingerprint] += 1
                self.times[fingerprint].append(self.elapsed())
                self.sizes[fingerprint] = size
            if fault in BREAKS:
                self.broke[fingerprint] += 1
        return fault

    def unheard(self, body: dict[str, Any]) -> None:
        """It was taken, and whoever sent it had given up by then, as on a busy machine they may."""
        with self._lock:
            self.broke[_read(self.kind, body)[0]] += 1


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        """Take the alert, or meet the fault that was drawn."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fault = self.server.fate(body)
        if fault.startswith("reset"):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        if fault == "slow":
            time.sleep(SLOW_S)
        if not fault and self._given_up():
            self.server.unheard(body)
        status = int(fault[:3]) if fault[:3].isdigit() else 200
        self._answer(status, {"Retry-After": "7"} if fault == "429 with a time" else {})

    def _given_up(self) -> bool:
        ready = select.poll()  # Not select(): a process of tests has more than 1,024 files open.
        try:
            ready.register(self.connection, select.POLLIN)
            return bool(ready.poll(0)) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def _answer(self, status: int, headers: dict[str, str]) -> None:
        said = b"ok" if status == 200 else b"no"
        if self.server.kind == "telegram":
            body: dict[str, Any] = {"ok": status == 200, "result": {"message_id": 42}}
            if status != 200:
                body = {"ok": False, "error_code": status, "description": "no"}
                body |= {"parameters": {"retry_after": 7}} if headers else {}
            said, headers = json.dumps(body).encode(), {}
        if self.server.kind == "discord":
            said = json.dumps({"id": "42"} if status == 200 else {"message": "no"}).encode()
            if headers:
                said, headers = b'{"message": "no", "retry_after": 7.0, "global": false}', {}
        if self.server.kind in ("pagerduty", "teams") and status == 200:
            status, said = 202, b'{"status": "success"}' if self.server.kind == "pagerduty" else b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


def _read(kind: Kind, body: dict[str, Any]) -> tuple[str, int]:
    """The fingerprint of what came, and how many alerts it tells of."""
    if kind == "webhook":
        fingerprint, what = body["data"]["fingerprint"], body["data"]["what"]
    elif kind == "slack":
        fingerprint, what = body["blocks"][-1]["elements"][0]["text"].partition(" | ")[2], body["text"]
    elif kind == "pagerduty":
        fingerprint, what = body["payload"]["custom_details"]["fingerprint"], body["payload"]["summary"]
    elif kind == "teams":
        blocks = body["attachments"][0]["content"]["body"]
        what, mark = blocks[0]["inlines"][0]["text"], blocks[-1]["inlines"][0]["text"]
        fingerprint = mark.partition(" | ")[2]
    elif kind == "discord":
        (embed,) = body["embeds"]
        fingerprint, what = embed["footer"]["text"].partition(" | ")[2], embed["title"].replace("\\", "")
    else:
        fingerprint, what = re.findall(r"<code>(.*)</code>", body["text"])[-1], body["text"].partition("\n")[0]
    count = re.search(r"(\d+) \S+ alerts", what)
    return fingerprint, int(count[1]) if count and fingerprint.startswith("group/") else 1


def _within(kind: Kind, body: dict[str, Any]) -> bool:
    """True where a message is one that its provider takes, by what each documents."""
    if len(json.dumps(body)) > TAKES.get(kind, 1_000_000):
        return False
    if kind == "slack":
        texts = [part["text"]["text"] for part in body["blocks"] if isinstance(part.get("text"), dict)]
        return len(body["blocks"]) <= 50 and len(texts[0]) <= 150 and all(0 < len(text) <= 3000 for text in texts)
    if kind == "telegram":
        return len(html.unescape(re.sub(r"<[^>]*>", "", body["text"])).encode("utf-16-le")) // 2 <= 4096
    if kind == "pagerduty":
        return len(body["payload"]["summary"]) <= 1024 and len(body["dedup_key"]) <= 255
    if kind == "discord":
        (embed,) = body["embeds"]
        sums = [embed["title"], embed["description"], embed["footer"]["text"]]
        sums += [text for field in embed["fields"] for text in (field["name"], field["value"])]
        return len(embed["title"]) <= 256 and len(embed["fields"]) <= 25 and sum(map(len, sums)) <= 6000
    return True


@contextmanager
def running(providers: list[Provider]) -> Iterator[None]:
    """The servers, up."""
    threads = [threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.02}) for each in providers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for each in providers:
            each.shutdown()
            each.server_close()
        for thread in threads:
            thread.join()
