"""docs/images/week-light.svg and week-dark.svg: dollars against mean wait by policy, from docs/images/week.json."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pilotlight.tools.report.pages.svg import apart, el, group

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTH, HEIGHT = 1200, 630
LEFT, RIGHT, TOP, BOTTOM = 120.0, 1140.0, 130.0, 540.0
STEP_USD, STEP_S = 2_000, 20
FAR = 1.5
"""Whoever pays over so many times the least is named below the drawing: to scale it would press all others together."""
NAMES = {
    "pilotlight": "Pilotlight",
    "s0-loop": "a plain loop",
    "keda": "KEDA",
    "cluster-autoscaler": "Cluster Autoscaler",
    "karpenter": "Karpenter",
    "always-on": "always on",
}
COLOURS = {
    "light": {"paper": "#ffffff", "ink": "#1f2328", "faint": "#d1d9e0", "ours": "#d1570b", "peer": "#59636e"},
    "dark": {"paper": "#0d1117", "ink": "#f0f6fc", "faint": "#3d444d", "ours": "#ff9a4d", "peer": "#9198a1"},
}


def picture(rows: list[Mapping[str, Any]], look: str) -> str:
    """The drawing in the colours of a look."""
    colours = COLOURS[look]
    usd = {row["policy"]: float(row["cost_usd"]) for row in rows}
    wait = {row["policy"]: float(row["wait_s"]["mean"]) for row in rows}
    inside = [name for name in usd if usd[name] <= FAR * min(usd.values())]
    low = min(usd.values()) // STEP_USD * STEP_USD
    high = max(usd[name] for name in inside) // STEP_USD * STEP_USD + STEP_USD
    longest = max(wait[name] for name in inside) // STEP_S * STEP_S + STEP_S

    def x(seconds: float) -> float:
        return LEFT + seconds / longest * (RIGHT - LEFT)

    def y(dollars: float) -> float:
        return BOTTOM - (dollars - low) / (high - low) * (BOTTOM - TOP)

    def text(said: str, size: int = 20, colour: str = "ink", **where: object) -> str:
        return el("text", said, font_size=size, fill=colours[colour], **where)

    far = [name for name in usd if name not in inside]
    below = "; ".join(f"{NAMES[name]}, far above: ${usd[name]:,.0f} at {wait[name]:,.0f} s" for name in far)
    parts = [
        el("rect", width=WIDTH, height=HEIGHT, fill=colours["paper"]),
        text("A week of 10,374 GPU jobs: dollars against mean wait", 30, x=LEFT, y=52, font_weight="bold"),
        text("a simulation; lower and further left is better", 20, "peer", x=LEFT, y=84),
        text(below, 20, "peer", x=LEFT, y=HEIGHT - 16),
        text("mean wait of a job", 20, "peer", x=RIGHT, y=HEIGHT - 16, text_anchor="end"),
    ]
    for dollars in range(int(low), int(high) + 1, STEP_USD):
        at = y(dollars)
        parts.append(el("line", x1=LEFT, x2=RIGHT, y1=at, y2=at, stroke=colours["faint"]))
        parts.append(text(f"${dollars:,}", 18, "peer", x=LEFT - 12, y=at + 6, text_anchor="end"))
    for seconds in range(0, int(longest) + 1, STEP_S):
        parts.append(text(f"{seconds} s", 18, "peer", x=x(seconds), y=BOTTOM + 28, text_anchor="middle"))
    places = apart([y(usd[name]) for name in inside], 30, TOP, BOTTOM)
    for name, place in zip(inside, places, strict=True):
        ours, at = name == "pilotlight", x(wait[name])
        right = at > (LEFT + RIGHT) / 2
        where = {"x": at + (-18 if right else 18), "y": place + 7, "text_anchor": "end" if right else "start"}
        said, weight = f"{NAMES[name]} ${usd[name]:,.0f}, {wait[name]:,.0f} s", "bold" if ours else "normal"
        parts.append(
            el("circle", cx=at, cy=y(usd[name]), r=11 if ours else 8, fill=colours["ours" if ours else "peer"])
        )
        parts.append(text(said, 22 if ours else 20, "ours" if ours else "ink", font_weight=weight, **where))
    label = "; ".join(f"{NAMES[name]}: ${usd[name]:,.0f} at a mean wait of {wait[name]:,.0f} s" for name in usd)
    font = "system-ui, sans-serif"
    return str(
        el("svg", group(parts), viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label, font_family=font,
           xmlns="http://www.w3.org/2000/svg")
    )  # fmt: skip


def pictures() -> dict[Path, str]:
    """Each file with its drawing."""
    rows = json.loads((IMAGES / "week.json").read_text("utf-8"))
    return {IMAGES / f"week-{look}.svg": f"{picture(rows, look)}\n" for look in COLOURS}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: week_picture.py --write")
    for path, drawn in pictures().items():
        path.write_text(drawn, "utf-8")
        print(path)
