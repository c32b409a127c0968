"""A month's report as one self-contained HTML page: no script, no font, no request when it is opened."""

from collections.abc import Sequence
from importlib.resources import files
from typing import get_args

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pilotlight.facts.money.bill import LineKind
from pilotlight.tools.advice.money.month import Month
from pilotlight.tools.report.pages.replay_page import style
from pilotlight.tools.report.pages.svg import Frame, Scale, axes, drawing, el, round_ticks
from pilotlight.tools.report.tables.month_table import Line, heading, notes, parts

BARS = 12
"""So many lines of a part are drawn; all are in the table."""
ROW = 30.0
FEW = 10
"""A month that has just begun has room for so many days."""


def page(month: Month, *, title: str) -> str:
    """The page."""
    used, idle, shared = month.split
    own = month.commitment_cents
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return template.from_string(files(__package__).joinpath("month_page.html").read_text("utf-8")).render(
        style=style(),
        title=title,
        lead=f"${month.total.usd:,.2f} for {month.total.gpu_hours:,.0f} GPU-hours, "
        f"of which {100 * month.efficiency:.1f}\u00a0% were held by teams or shared.",
        tiles=[
            ("teams held", f"${used:,.2f}"),
            ("idle", f"${idle:,.2f}"),
            ("shared", f"${shared:,.2f}"),
            *([("commitments unused", f"${own:,.2f}")] if own else []),
            ("on spot", f"{100 * month.spot_share:.1f} %"),
            ("a GPU-hour", f"${month.total.rate:,.2f}"),
        ],
        days=_days(month) if any(sum(day[1:]) for day in month.days) else None,
        sections=[(heading(month, part), lines, _bars(lines)) for part, lines in parts(month) if lines],
        notes=notes(month),
    )


def _days(month: Month) -> Markup:
    """A stacked bar a day."""
    frame = Frame(960, 300, 64, 944, 28, 262)
    top = max(float(sum(kinds)) for _, *kinds in month.days)
    slots = max(len(month.days), FEW)
    width = (frame.right - frame.left) / slots
    y = Scale(0, top, frame.bottom, frame.top)
    bars: list[Markup] = []
    for number, (_, *kinds) in enumerate(month.days):
        base = 0.0
        for kind, usd in zip(get_args(LineKind), kinds, strict=True):
            low, high = y(base), y(base + float(usd))
            left, wide = frame.left + number * width + 1, max(1.0, width - 2)
            bars.append(el("rect", x=left, y=high, width=wide, height=low - high, class_=kind))
            base += float(usd)
    every = max(1, len(month.days) // 10)
    ticks = [(n + 0.5, f"{day[0]:%d %b}") for n, day in enumerate(month.days) if n % every == 0]
    x = Scale(0, slots, frame.left, frame.right)
    lines = [(value, f"${value:,.0f}" if top >= 10 else f"${value:,.2f}") for value in round_ticks(top)]
    about = f"From {month.first} to {month.last}: used, idle, shared and commitments, one bar a day."
    return drawing(frame, "Dollars a day", about, axes(frame, x, y, ticks, lines, "dollars a day"), *bars)


def _bars(lines: Sequence[Line]) -> Markup | None:
    """The dearest lines as bars; a single line needs none."""
    shown = [line for line in lines if line.usd > 0][:BARS]
    if len(shown) < 2:
        return None
    frame = Frame(960, 12 + ROW * len(shown), 300, 860, 6, 6 + ROW * len(shown))
    x = Scale(0, float(max(line.usd for line in shown)), frame.left, frame.right)
    marks: list[Markup] = []
    for number, line in enumerate(shown):
        middle, end = frame.top + ROW * (number + 0.5), x(float(line.usd))
        name = line.name if len(line.name) <= 38 else f"{line.name[:37]}…"
        marks += [
            el("text", name, x=frame.left - 10, y=middle + 5, class_="label end"),
            el("rect", x=frame.left, y=middle - 9, width=max(1.0, end - frame.left), height=18.0, class_="bar"),
            el("text", f"${line.usd:,.2f}", x=end + 8, y=middle + 5, class_="label"),
        ]
    return drawing(frame, "Dollars by line", "The dearest first.", *marks)
