"""Inline SVG from small pure functions: elements, scales, paths, axes. Whatever text goes in is escaped.

Positions are SVG user units (pixels at natural size); y grows downwards. Colours live in the page's style sheet:
shapes carry class names only, so that light, dark and print need no second drawing.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

Tick = tuple[float, str]
"""A value on an axis, and its label."""


def el(tag: str, *children: str, **attributes: object) -> Markup:
    """One element. ``class_`` is class, ``stroke_width`` is stroke-width; numbers keep one decimal."""
    shown = Markup("").join(Markup(' {}="{}"').format(_name(k), _number(v)) for k, v in attributes.items())
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), shown, group(children))


def group(children: Iterable[str]) -> Markup:
    """Elements one after the other; plain text among them is escaped."""
    return Markup("").join(escape(child) for child in children)


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _number(value: object) -> object:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


class Scale(NamedTuple):
    """Values ``lo``..``hi`` onto pixels ``start``..``end``, through ``warp`` (math.log1p for waits)."""

    lo: float
    hi: float
    start: float
    end: float
    warp: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        """The pixel of a value; a scale without extent puts everything at its start."""
        lo, hi = self.warp(self.lo), self.warp(self.hi)
        if hi == lo:
            return self.start
        return self.start + (self.warp(value) - lo) / (hi - lo) * (self.end - self.start)


class Frame(NamedTuple):
    """A drawing's size and the plot's edges inside it."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float


def round_ticks(top: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 x 10^k from 0 to at most ``top``, about so many."""
    if top <= 0:
        return [0.0]
    rough = top / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    return [i * step for i in range(int(top / step + 1e-9) + 1)]


def steps(points: Sequence[tuple[float, float]]) -> str:
    """A path that holds each value until the next point."""
    first, *rest = points
    moves = [f"M{first[0]:.1f} {first[1]:.1f}"]
    return "".join(moves + [f"H{x:.1f}V{y:.1f}" for x, y in rest])


def line(points: Sequence[tuple[float, float]]) -> str:
    """A path of straight pieces."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def area(points: Sequence[tuple[float, float]], base: float) -> str:
    """The step path, closed down to the ``base`` line."""
    return f"{steps(points)}V{base:.1f}H{points[0][0]:.1f}Z"


def axes(frame: Frame, x: Scale, y: Scale, x_ticks: Iterable[Tick], y_ticks: Iterable[Tick], unit: str) -> Markup:
    """Grid lines across the plot, tick labels below and to the left of it, the unit of y above its top left corner."""
    rows = [
        el("line", class_="grid", x1=frame.left, x2=frame.right, y1=y(v), y2=y(v))
        + el("text", label, class_="tick end", x=frame.left - 8, y=y(v) + 4)
        for v, label in y_ticks
    ]
    columns = [
        el("line", class_="notch", x1=x(v), x2=x(v), y1=frame.bottom, y2=frame.bottom + 5)
        + el("text", label, class_="tick middle", x=x(v), y=frame.bottom + 20)
        for v, label in x_ticks
    ]
    return group([*rows, *columns, el("text", unit, class_="tick", x=frame.left, y=frame.top - 12)])


def apart(wanted: Sequence[float], gap: float, highest: float, lowest: float) -> list[float]:
    """Positions near the wanted ones, in their order, ``gap`` apart or more, from ``highest`` down to ``lowest``."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed: dict[int, float] = {}
    floor = highest
    for i in order:
        placed[i] = max(wanted[i], floor)
        floor = placed[i] + gap
    ceiling = lowest
    for i in reversed(order):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return [placed[i] for i in range(len(wanted))]


def drawing(frame: Frame, title: str, about: str, *children: str) -> Markup:
    """The whole picture, with a name and a description for those who cannot see it."""
    box = f"0 0 {frame.width:g} {frame.height:g}"
    label = f"{title}. {about}"
    return el("svg", *children, viewBox=box, role="img", aria_label=label, xmlns="http://www.w3.org/2000/svg")
