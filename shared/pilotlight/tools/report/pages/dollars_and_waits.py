"""Dollars against mean waits of a replay's policies: dots with names, which stand below where room is short."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from pilotlight.tools.replay.traces.trace_job import Result
from pilotlight.tools.report.pages.label_places import Box, boxes
from pilotlight.tools.report.pages.label_places import Dot as Named
from pilotlight.tools.report.pages.replay_charts import NARROW as SHORT
from pilotlight.tools.report.pages.replay_charts import WIDE as LONG
from pilotlight.tools.report.pages.replay_charts import Chart
from pilotlight.tools.report.pages.svg import Frame, Scale, axes, drawing, el, group, round_ticks
from pilotlight.tools.report.tables.replay_table import usd, wait
from pilotlight.units import Seconds

WIDE, NARROW = LONG._replace(left=76), SHORT._replace(left=76)
"""As all charts of a replay, with room for whole dollars."""

FAR = 1.5
"""A policy that pays over so many times the least leaves the frame: to scale it would press all others together."""

LETTER, LINE = 7.4, 17.0
"""Pixels of a letter at most, and of a line, in a drawing's labels."""

DIGIT = 8.6
"""Pixels of a digit in bold."""


class _Mark(NamedTuple):
    name: str
    x: float
    y: float
    far: bool


def chart(results: Sequence[Result]) -> Chart:
    """Pilotlight first, as the results have it. An arrow marks who leaves the frame."""
    kinds = (("box more", results[0].policy), ("box less", "another policy"))
    return Chart(_wide(results), _narrow(results), kinds)


def _wide(results: Sequence[Result]) -> Markup:
    marks, body = _drawn(results, WIDE)
    names = [f"{_name(result, mark)}: {usd(result.cost_usd)}, {wait(result.wait_s.mean)}" for result, mark in
             zip(results, marks, strict=True)]  # fmt: skip
    edge = Box(WIDE.left + 4, WIDE.top, WIDE.right, WIDE.bottom - 2)
    sized = [Named(m.x, m.y, 6, LETTER * len(name), LINE) for m, name in zip(marks, names, strict=True)]
    texts = [
        _beside(name, box, mark, "label strong" if i == 0 else "label")
        for i, (name, box, mark) in enumerate(zip(names, boxes(sized, edge), marks, strict=True))
    ]
    return drawing(WIDE, "Dollars against mean waits", _told(results), body, group(texts))


def _beside(name: str, box: Box, mark: _Mark, kind: str) -> Markup:
    """A name in its box, at the edge that is next to its dot."""
    ends = box.right < mark.x
    return el("text", name, class_=f"{kind} end" if ends else kind, x=box.right if ends else box.left, y=box.bottom - 4)


def _narrow(results: Sequence[Result]) -> Markup:
    """Dots have numbers, which lines below the drawing name."""
    marks, body = _drawn(results, NARROW)
    edge = Box(NARROW.left + 2, NARROW.top, NARROW.right, NARROW.bottom)
    sized = [Named(m.x, m.y, 6, DIGIT * len(str(i)), LINE - 3) for i, m in enumerate(marks, 1)]
    texts = [
        el("text", str(i), class_="label strong", x=box.left, y=box.bottom - 3)
        for i, box in enumerate(boxes(sized, edge), 1)
    ]
    below = NARROW.height + 10
    rows = [
        el("text", f"{i} {_name(result, mark)}: {usd(result.cost_usd)}, {wait(result.wait_s.mean)}",
           class_="label strong" if i == 1 else "label", x=4, y=below + i * LINE - 6)
        for i, (result, mark) in enumerate(zip(results, marks, strict=True), 1)
    ]  # fmt: skip
    frame = NARROW._replace(height=below + len(rows) * LINE)
    return drawing(frame, "Dollars against mean waits", _told(results), body, group(texts), group(rows))


def _drawn(results: Sequence[Result], frame: Frame) -> tuple[list[_Mark], Markup]:
    """Where the dots are, and axes with them."""
    paid = {result.policy: float(result.cost_usd) for result in results}
    far = {name for name, dollars in paid.items() if dollars > FAR * min(paid.values())}
    inside = [dollars for name, dollars in paid.items() if name not in far]
    spread = max(inside) - min(inside) or 0.1 * max(inside) or 1.0
    low, high = min(inside) - 0.15 * spread, max(inside) + 0.2 * spread
    x = Scale(0, _longest(results), frame.left, frame.right)
    y = Scale(low, high, frame.bottom, frame.top)
    marks = [_Mark(r.policy, x(r.wait_s.mean), y(min(high, paid[r.policy])), r.policy in far) for r in results]
    step = [*round_ticks(high - low, 4), 1.0][1]
    first = int(low // step) + 1
    ticks = [(n * step, f"${n * step:,.0f}") for n in range(first, int(high // step) + 1)]
    seconds = [(v, f"{v:,g} s") for v in round_ticks(x.hi, 4 if frame is NARROW else 6) if x(v) <= x.end - 16]
    dots = [
        el("circle", el("title", _line(result)), class_="less" if i else "more", cx=mark.x, cy=mark.y, r=6)
        for i, (result, mark) in reversed(list(enumerate(zip(results, marks, strict=True))))
    ]
    return marks, group([axes(frame, x, y, seconds, ticks, "dollars, by mean wait"), *dots])


def _longest(results: Sequence[Result]) -> Seconds:
    return 1.15 * max(1.0, *(result.wait_s.mean for result in results))


def _name(result: Result, mark: _Mark) -> str:
    return f"{result.policy} ↑" if mark.far else result.policy


def _told(results: Sequence[Result]) -> str:
    return "; ".join(map(_line, results))


def _line(result: Result) -> str:
    return f"{result.policy}: {usd(result.cost_usd)} at a mean wait of {wait(result.wait_s.mean)}"
