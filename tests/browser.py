"""A headless browser that asks nobody without being heard: what a page looks like, and what it asked for."""

import struct
import subprocess
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BROWSERS_OWN = ("clients2.google.com", "update.googleapis.com", "accounts.google.com")
"""Whom Chromium asks for itself as it starts, whatever page it opens."""


def opened(text: str, folder: Path) -> tuple[bytes, list[str]]:
    """A screenshot of the page, and the addresses that it (not the browser for itself) asked for."""
    (folder / "report.html").write_text(text, "utf-8")
    asked: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _listener(asked)) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        picture = _screenshot(folder, f"127.0.0.1:{proxy.server_port}")
        proxy.shutdown()
    return picture, [address for address in asked if not any(host in address for host in BROWSERS_OWN)]


def _listener(asked: list[str]) -> type[BaseHTTPRequestHandler]:
    class Listener(BaseHTTPRequestHandler):
        """A proxy that notes what it is asked for and answers 404."""

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_CONNECT = do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    return Listener


def _screenshot(folder: Path, proxy: str) -> bytes:
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"]
    flags += ["--disable-component-update", "--no-first-run", "--disable-sync", f"--user-data-dir={folder}/profile"]
    flags += [f"--proxy-server={proxy}", "--window-size=1000,1500", f"--screenshot={folder}/page.png"]
    subprocess.run(
        ["chromium", *flags, (folder / "report.html").as_uri()], check=True, capture_output=True, timeout=120
    )
    return (folder / "page.png").read_bytes()


def pixels(png: bytes) -> list[bytes]:
    """The RGB values of an 8-bit PNG (RGB or RGBA, not interlaced), undoing its row filters."""
    width, height, _, kind = struct.unpack(">IIBB", png[16:26])
    size = {2: 3, 6: 4}[kind]
    packed, at = b"", 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        packed += png[at + 8 : at + 8 + length] if png[at + 4 : at + 8] == b"IDAT" else b""
        at += length + 12
    raw, stride = zlib.decompress(packed), width * size
    pixels, above = [], bytearray(stride)
    for row in range(height):
        begin = row * (stride + 1)
        above = _unfiltered(raw[begin], bytearray(raw[begin + 1 : begin + 1 + stride]), above, size)
        pixels += [bytes(above[i : i + 3]) for i in range(0, stride, size)]
    return pixels


def _unfiltered(how: int, row: bytearray, above: bytearray, size: int) -> bytearray:
    if how == 2:
        return bytearray((a + b) & 255 for a, b in zip(row, above, strict=True))
    for i in range(len(row) if how else 0):
        left, up, corner = row[i - size] if i >= size else 0, above[i], above[i - size] if i >= size else 0
        row[i] = (row[i] + (left if how == 1 else _average_or_nearest(how, left, up, corner))) & 255
    return row


def _average_or_nearest(how: int, left: int, up: int, corner: int) -> int:
    return (left + up) // 2 if how == 3 else min((left, up, corner), key=lambda v: abs(left + up - corner - v))
