"""GPUs that are held and not used, as one self-contained HTML page: no script, no font, no request."""

from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pilotlight.tools.report.pages.replay_page import style
from pilotlight.tools.report.pages.svg import Frame, Scale, axes, drawing, el, round_ticks
from pilotlight.tools.report.tables.waste_table import PARTS, Found, evidence, shared_usd, usd_of, watts_of

KINDS = (("silent", "paid"), ("room", "peer-paid"), ("working", "used"))
FEW = 6
"""A span of a few weeks has room for so many bars."""


def page(found: Found) -> str:
    """The page."""
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    drawn = any(row.watts is not None for row in found.rows)
    held = sum(row.held for row in found.rows)
    sums = {part: sum(float(usd_of(row, part)) for row in found.rows) for part in PARTS}
    sums["by sharing"] = float(shared_usd(found))
    return template.from_string(files(__package__).joinpath("waste_page.html").read_text("utf-8")).render(
        style=style(),
        lead=f"{held:.6g} GPUs are held by pods for ${held * float(found.price):,.2f} an hour.",
        tiles=[(part, f"${usd:,.2f}/h") for part, usd in sums.items()],
        headings=("GPUs", "activity", "$/h", *PARTS, "by sharing", *["W of an idle GPU"] * drawn),
        rows=[
            (
                row.owner,
                [f"{row.held:.4g}", f"{row.activity:.0%}", f"{row.usd_per_hour:,.2f}"]
                + [f"{usd_of(row, part):,.2f}" for part in PARTS]
                + [f"{shared_usd(found, row.owner):,.2f}"]
                + [watts_of(row)] * drawn,
            )
            for row in found.rows
        ],
        evidence=list(evidence(found)),
        weeks=_weeks(found) if found.weeks else None,
        metric=found.telemetry.metric,
    )


def _weeks(found: Found) -> Markup:
    """A stacked bar a week, in dollars."""
    frame = Frame(960, 300, 64, 944, 28, 262)
    price = float(found.price)
    top = max(hours.held * price for hours in found.weeks.values())
    slots = max(len(found.weeks), FEW)
    width = (frame.right - frame.left) / slots
    y = Scale(0, top, frame.bottom, frame.top)
    bars: list[Markup] = []
    for number, hours in enumerate(found.weeks.values()):
        base = 0.0
        for kind, colour in KINDS:
            usd = getattr(hours, kind) * price
            low, high = y(base), y(base + usd)
            left = frame.left + number * width + 1
            bars.append(
                el("rect", x=left, y=high, width=max(1.0, width - 2), height=low - high, style=f"fill: var(--{colour})")
            )
            base += usd
    every = max(1, len(found.weeks) // 10)
    ticks = [(n + 0.5, f"{monday:%d %b}") for n, monday in enumerate(found.weeks) if n % every == 0]
    lines = [(value, f"${value:,.0f}" if top >= 10 else f"${value:,.2f}") for value in round_ticks(top)]
    x = Scale(0, slots, frame.left, frame.right)
    about = "Dollars of held GPUs a week: silent, room beside work, and work."
    return drawing(frame, "Dollars a week", about, axes(frame, x, y, ticks, lines, "dollars a week"), *bars)
