"""A headless browser that can reach nobody: what a page looks like, and what it asked for."""

import json
import struct
import subprocess
import zlib
from pathlib import Path

BROWSERS_OWN = "not an origin"
"""Who Chromium's log says wants a request that the browser makes for itself, whatever page it opens."""

NOBODY = "127.0.0.1:9"
"""A proxy that is not there."""


def opened(text: str, folder: Path) -> tuple[bytes, list[str]]:
    """A screenshot of the page, and the addresses that it (not the browser for itself) asked for."""
    page, picture, log = folder / "report.html", folder / "page.png", folder / "net.json"
    page.write_text(text, "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
    flags += ["--disable-background-networking", f"--user-data-dir={folder}/profile", f"--proxy-server={NOBODY}"]
    flags += ["--window-size=1000,2200", f"--screenshot={picture}", f"--log-net-log={log}"]
    subprocess.run(["chromium", *flags, page.as_uri()], check=True, capture_output=True)
    return picture.read_bytes(), _asked(json.loads(log.read_text("utf-8")))


def _asked(log: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    """The addresses of requests that a page began."""
    begun = [event["params"] for event in log["events"] if "initiator" in event.get("params", {})]
    return sorted({begins["url"] for begins in begun if begins["initiator"] != BROWSERS_OWN})


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
