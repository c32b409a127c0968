"""Dollars against waits: our runs by their price of waiting and every peer's, as a chart for the page and as text."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from pilotlight.tools.report.pages.svg import Frame, Scale, apart, axes, drawing, el, group, line, round_ticks

FAR = 1.5
"""Who pays over so many times our dearest leaves the frame: drawn to scale it would press all others together."""
WIDE, HIGH = 64, 16
"""Cells of the drawing in text, at most, beside its labels."""


class Dot(NamedTuple):
    """One run: its name, mean wait in seconds, dollars, and whether it is ours."""

    name: str
    wait_s: float
    usd: float
    ours: bool


def chart(dots: Sequence[Dot]) -> Markup:
    """Ours joined by a line, peers as dots with their names; an arrow marks who leaves the frame."""
    frame = Frame(960, 430, 64, 690, 28, 390)
    top, low, longest = _span(dots)
    x = Scale(0, longest, frame.left, frame.right)
    y = Scale(low, top, frame.bottom, frame.top)
    shown = [(d, x(d.wait_s), y(min(d.usd, top))) for d in dots]
    places = apart([at for _, _, at in shown], 18, frame.top + 4, frame.bottom)
    ours = sorted((at, height) for d, at, height in shown if d.ours)
    marks = [
        el("circle", el("title", _told(d)), class_=f"line c{0 if d.ours else 1}", cx=at, cy=height, r=4)
        for d, at, height in shown
    ]
    names = [
        el("text", f"{d.name} ${d.usd:,.0f}, {d.wait_s:,.0f} s{' ↑' if d.usd > top else ''}",
           class_="label strong" if d.ours else "label", x=frame.right + 22, y=place + 4)
        for (d, _, _), place in zip(shown, places, strict=True)
    ]  # fmt: skip
    ticks = [(low + v, f"${low + v:,.0f}") for v in round_ticks(top - low)]
    return drawing(
        frame,
        "Dollars against mean waits",
        "; ".join(map(_told, dots)),
        axes(frame, x, y, [(v, f"{v:,.0f} s") for v in round_ticks(longest)], ticks, "dollars"),
        el("path", class_="line c0", d=line(ours)) if len(ours) > 1 else "",
        group(marks),
        group(names),
    )


def text_chart(dots: Sequence[Dot], columns: int) -> str:
    """The same in text of so many columns: ours as ``o``, peers as letters that the line below names."""
    top, low, longest = _span(dots)
    left = [f"${top:,.0f}", *[""] * (HIGH - 1), f"${low:,.0f}"]
    gutter = max(map(len, left))
    wide = max(20, min(WIDE, columns - gutter - 3))
    cells = [[" "] * (wide + 1) for _ in range(HIGH + 1)]
    keys = []
    letters = iter("abcdefghijklmnpqrstuvwxyz")
    for d in dots:
        mark = "o" if d.ours else next(letters)
        keys += [] if d.ours else [f"{mark} {d.name}{' (far above)' if d.usd > top else ''}"]
        row = round((top - min(d.usd, top)) / ((top - low) or 1) * HIGH)
        cells[row][round(d.wait_s / longest * wide)] = mark
    rows = ["".join(row).rstrip() for row in cells]
    body = [f"{label:>{gutter}} |{row}" for label, row in zip(left, rows, strict=True)]
    floor = f"{'':>{gutter}} +{'-' * wide}"
    ends = f"{'':>{gutter}}  0 s{'mean wait':^{wide - 14}}{longest:,.0f} s"
    return "\n".join([*body, floor, ends, "o pilotlight; " + "; ".join(keys) if keys else "o pilotlight"])


def _span(dots: Sequence[Dot]) -> tuple[float, float, float]:
    """The most and the least dollars to draw, and the longest wait."""
    ours = [d.usd for d in dots if d.ours]
    inside = [d.usd for d in dots if d.usd <= FAR * max(ours)]
    low = min(inside)
    top = max(max(inside), low * 1.01)
    return top, low, max(1.0, math.ceil(max(d.wait_s for d in dots)))


def _told(dot: Dot) -> str:
    return f"{dot.name}: ${dot.usd:,.0f} at a mean wait of {dot.wait_s:,.1f} s"
