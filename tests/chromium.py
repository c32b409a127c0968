"""One headless Chromium for all tests of a session, led over a pipe by its own protocol: no library, no port.

A page of it can reach this machine only. What it asked for, and what it complained of, is kept.
"""

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--no-zygote", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=127.0.0.1", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_S = 120.0
"""A busy machine takes its time; what does not come in so long does not come."""


CRASHES = 8
"""A page whose process ends while it loads is loaded anew so often: that is the browser's fault, and no page's."""


class Crashed(AssertionError):
    """A page's process has ended: nothing that it was asked is answered."""


class Chromium:
    """The browser's process and the pipes to it."""

    def __init__(self, folder: Path) -> None:
        to_it, self._out = os.pipe()
        self._in, from_it = os.pipe()
        command = f'exec chromium "$@" 3<&{to_it} 4>&{from_it}'
        words = ["bash", "-c", command, "chromium", *FLAGS, f"--user-data-dir={folder}"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(words, pass_fds=(to_it, from_it), stdout=quiet, stderr=quiet)
        os.close(to_it)
        os.close(from_it)
        self._left = b""
        self._last = 0
        self.pages: dict[str, Page] = {}

    def ask(self, method: str, session: str = "", **words: Any) -> dict[str, Any]:
        """The result of one command. Events that come before it are handed to their pages."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": words} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (found := self._read()).get("id") != self._last:
            if session and found.get("sessionId") == session and found.get("method") == "Inspector.targetCrashed":
                raise Crashed(f"{method}: the page's process ended")
            if "method" in found and (page := self.pages.get(found.get("sessionId", ""))):  # Else a late answer.
                page.heard(found["method"], found["params"])
        if "error" in found:
            raise AssertionError(f"{method}: {found['error']}")
        result: dict[str, Any] = found["result"]
        return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            answers = select.poll()  # A session of many tests may have more files open than ``select`` takes.
            answers.register(self._in, select.POLLIN)
            assert answers.poll(PATIENCE_S * 1000), "chromium does not answer"
            more = os.read(self._in, 1 << 16)
            assert more, "chromium has ended"
            self._left += more
        text, _, self._left = self._left.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    @contextmanager
    def page(self, width: int = 1280, height: int = 900) -> Iterator["Page"]:
        """A new page with no storage, in light colours, closed when it is left."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        made = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            made.ask(f"{domain}.enable")
        made.ask("Performance.enable", timeDomain="threadTicks")
        made.looks(width, height)
        try:
            yield made
        finally:
            self.ask("Target.disposeBrowserContext", browserContextId=context)
            del self.pages[session]

    def end(self) -> None:
        """End the process."""
        os.close(self._out)
        self._process.terminate()
        self._process.wait()
        os.close(self._in)


class Page:
    """One page. ``asked`` are the addresses it asked for, ``complaints`` errors and what its policy forbade."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser, self._session = browser, session
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self._loads = 0

    def ask(self, method: str, **words: Any) -> dict[str, Any]:
        """One command to this page."""
        return self._browser.ask(method, self._session, **words)

    def heard(self, method: str, told: dict[str, Any]) -> None:
        """An event of this page's."""
        if method == "Network.requestWillBeSent" and not told["request"]["url"].startswith("data:"):
            self.asked.append(told["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loads += 1
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"].get("exception", told["exceptionDetails"])))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")

    def looks(self, width: int, height: int, *, dark: bool = False) -> None:
        """Its window's size, and which colours its reader prefers."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str) -> None:
        """Go there, until it is loaded."""
        for _ in range(CRASHES):
            try:
                return self._load(address)
            except Crashed:
                self.asked.clear()
        self._load(address)

    def _load(self, address: str) -> None:
        before = self._loads
        self.ask("Page.navigate", url=address)
        end = time.monotonic() + PATIENCE_S
        while self._loads == before:
            assert time.monotonic() < end, f"{address} did not load"
            self.ask("Performance.getMetrics")  # Events come with answers.

    def run(self, script: str) -> Any:
        """The value of an expression, awaited where it is a promise."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait for an expression to be true; a page that is on its way out has none that are."""
        end = time.monotonic() + PATIENCE_S
        tried = f"(() => {{ try {{ return {condition} }} catch {{ return false }} }})()"
        while not self.run(tried):
            assert time.monotonic() < end, f"never: {condition}; the page says {self.run('document.body.innerText')!r}"
            time.sleep(0.02)

    def press(self, key: str, text: str = "") -> None:
        """A key goes down and up."""
        code = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowDown": 40}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def write(self, text: str) -> None:
        """Text goes in where the focus is."""
        self.ask("Input.insertText", text=text)

    def picture(self, *, whole: bool = True) -> bytes:
        """A PNG of the page, or of what its window shows."""
        return base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def busy_ms(self) -> float:
        """Milliseconds of processor time of the page's thread so far: scripts, styles, layout and painting."""
        found = {one["name"]: one["value"] for one in self.ask("Performance.getMetrics")["metrics"]}
        return 1000 * float(found["TaskDuration"])
