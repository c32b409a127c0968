"""docs/images/week-light.svg and week-dark.svg: dollars against mean wait of the week's policies, from its two runs.

docs/images/week.json is of `pilotlight week`, and week-curve.json of `pilotlight tune` over the same jobs: Pilotlight
at five prices of waiting, and the pinned peers that a careful admin runs.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pilotlight.tools.report.pages.label_places import Box, Dot, boxes
from pilotlight.tools.report.pages.svg import Scale, el, group, line, round_ticks

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTH, HEIGHT = 1200, 630
LEFT, RIGHT, TOP, BOTTOM = 110.0, 1150.0, 128.0, 536.0
DEFAULT = 30
"""Dollars an hour of waiting in examples/policy.yaml, which `pilotlight week` goes by."""

FAR = 1.5
"""Whoever pays over so many times the least is named below the drawing: to scale it would press all others together."""
BROKEN = "dollars do not begin at $0"
"""Said of the axis: nearby costs would lie on each other beside the whole sum."""
NAMES = {
    "s0-loop": "a plain loop",
    "keda": "KEDA",
    "cluster-autoscaler": "Cluster Autoscaler",
    "cluster-autoscaler-pinned": "Cluster Autoscaler, pinned",
    "karpenter": "Karpenter",
    "karpenter-pinned:0": "Karpenter, pinned, 0 s idle",
    "karpenter-pinned:900": "Karpenter, pinned, 900 s idle",
    "always-on": "always on",
}
COLOURS = {
    "light": {"paper": "#ffffff", "ink": "#1f2328", "faint": "#d1d9e0", "ours": "#bc4c00", "peer": "#59636e"},
    "dark": {"paper": "#0d1117", "ink": "#f0f6fc", "faint": "#3d444d", "ours": "#ff9a4d", "peer": "#9198a1"},
}
LETTER = 0.56
"""Width of a letter at most, in sizes of its type."""


class Point(NamedTuple):
    """One run: its label, mean wait and dollars, and whether it is ours."""

    label: str
    wait: float
    usd: float
    ours: bool

    @property
    def size(self) -> int:
        """Its label's type."""
        return 20 if self.ours else 18


def points(week: Sequence[Mapping[str, Any]], curve: Mapping[str, Any]) -> list[Point]:
    """Ours by price of waiting, then the peers; each once."""
    runs = curve["ours"] or [{**week[0], "value_of_wait": DEFAULT}]
    ours = [Point(_ours(run), *_at(run), True) for run in runs]
    rows = {row["policy"]: row for row in (*week, *curve["peers"])}
    peers = [
        Point(f"{NAMES[name]} ${row['cost_usd']:,.0f}, {row['wait_s']['mean']:,.0f} s", *_at(row), False)
        for name, row in rows.items()
        if name in NAMES
    ]
    return ours + peers


def _ours(run: Mapping[str, Any]) -> str:
    name = "Pilotlight, " if run["value_of_wait"] == DEFAULT else ""
    return f"{name}${run['value_of_wait']:g}/h: ${run['cost_usd']:,.0f}, {run['wait_s']['mean']:,.0f} s"


def _at(row: Mapping[str, Any]) -> tuple[float, float]:
    return float(row["wait_s"]["mean"]), float(row["cost_usd"])


def title(week: Sequence[Mapping[str, Any]]) -> str:
    """One sentence: what the picture shows."""
    return f"What a week of {week[0]['jobs']:,} GPU jobs costs, against how long they wait, by policy."


class Drawn(NamedTuple):
    """Dots and labels as they lie in the picture."""

    inside: list[Point]
    dots: list[Dot]
    labels: list[Box]
    x: Scale
    y: Scale


def lay(found: Sequence[Point]) -> Drawn:
    """Where everything lies; labels keep off each other, off dots and off the curve."""
    inside = [one for one in found if one.usd <= FAR * min(point.usd for point in found)]
    low, high = min(one.usd for one in inside), max(one.usd for one in inside)
    room = 0.1 * (high - low)
    x = Scale(0, 1.06 * max(one.wait for one in inside), LEFT, RIGHT)
    y = Scale(low - room, high + room, BOTTOM, TOP)
    dots = [
        Dot(x(one.wait), y(one.usd), 9 if one.ours else 7, LETTER * one.size * len(one.label), one.size + 4.0)
        for one in inside
    ]
    curve = [(dot.x, dot.y) for dot, one in zip(dots, inside, strict=True) if one.ours]
    return Drawn(inside, dots, boxes(dots, Box(LEFT + 6, TOP - 20, RIGHT + 40, BOTTOM - 4), sorted(curve)), x, y)


def picture(week: Sequence[Mapping[str, Any]], curve: Mapping[str, Any], look: str) -> str:
    """The drawing in the colours of a look."""
    colours, found = COLOURS[look], points(week, curve)
    drawn = lay(found)

    def text(said: str, size: int, colour: str = "ink", **where: object) -> str:
        return el("text", said, font_size=size, fill=colours[colour], **where)

    far = [one for one in found if one not in drawn.inside]
    parts = [
        el("rect", width=WIDTH, height=HEIGHT, fill=colours["paper"]),
        text(title(week), 25, x=40, y=48, font_weight="bold"),
        text(
            "a simulation; lower and further left is better; the curve: Pilotlight by value_of_wait, in $ an hour",
            19,
            "peer",
            x=40,
            y=80,
        ),
        text("; ".join([BROKEN, *(f"far above: {one.label}" for one in far)]), 18, "peer", x=40, y=HEIGHT - 18),
        text("mean wait of a job", 18, "peer", x=RIGHT + 20, y=HEIGHT - 18, text_anchor="end"),
        *_axes(drawn, colours),
    ]
    ours = sorted((dot.x, dot.y) for dot, one in zip(drawn.dots, drawn.inside, strict=True) if one.ours)
    parts.append(el("path", d=line(ours), fill="none", stroke=colours["ours"], stroke_width=3))
    for one, dot, box in zip(drawn.inside, drawn.dots, drawn.labels, strict=True):
        kind = "ours" if one.ours else "peer"
        ends = box.right < dot.x
        where = {"x": box.right if ends else box.left, "y": box.bottom - 6, "text_anchor": "end" if ends else "start"}
        parts.append(el("circle", cx=dot.x, cy=dot.y, r=dot.r, fill=colours[kind]))
        parts.append(text(one.label, one.size, "ours" if one.ours else "ink",
                          font_weight="bold" if one.ours else "normal", **where))  # fmt: skip
    told = "; ".join(one.label for one in found)
    return str(
        el("svg", group(parts), viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=f"{title(week)} {told}",
           font_family="system-ui, sans-serif", xmlns="http://www.w3.org/2000/svg")
    )  # fmt: skip


def _axes(drawn: Drawn, colours: Mapping[str, str]) -> list[str]:
    """Lines of round dollars, and seconds below them."""
    x, y, soft = drawn.x, drawn.y, {"font_size": 17, "fill": colours["peer"]}
    step = round_ticks(y.hi - y.lo, 5)[1]
    made: list[str] = []
    for n in range(int(y.lo // step) + 1, int(y.hi // step) + 1):
        at = y(n * step)
        made.append(el("line", x1=LEFT, x2=RIGHT + 20, y1=at, y2=at, stroke=colours["faint"]))
        made.append(el("text", f"${n * step:,.0f}", x=LEFT - 12, y=at + 6, text_anchor="end", **soft))
    for seconds in round_ticks(x.hi, 8):
        made.append(el("text", f"{seconds:g} s", x=x(seconds), y=BOTTOM + 28, text_anchor="middle", **soft))
    return made


def pictures() -> dict[Path, str]:
    """Each file with its drawing."""
    week = json.loads((IMAGES / "week.json").read_text("utf-8"))
    sweep = IMAGES / "week-curve.json"
    curve = json.loads(sweep.read_text("utf-8")) if sweep.exists() else {"ours": [], "peers": []}
    return {IMAGES / f"week-{look}.svg": f"{picture(week, curve, look)}\n" for look in COLOURS}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: week_picture.py --write")
    for path, drawn in pictures().items():
        path.write_text(drawn, "utf-8")
        print(path)
