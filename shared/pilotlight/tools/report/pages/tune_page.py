"""A sweep as one self-contained HTML page: no script, no font, no request when it is opened."""

from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from pilotlight.tools.report.pages.replay_page import style
from pilotlight.tools.report.pages.tune_chart import Dot, chart


def page(
    dots: Sequence[Dot],
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str,
    advice: str,
    note: str,
    line: str,
) -> str:
    """The page: what is recommended, the chart, the table of all runs, and the line of the policy."""
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return template.from_string(files(__package__).joinpath("tune_page.html").read_text("utf-8")).render(
        style=style(), title=title, advice=advice, note=note, line=line, headings=headings, rows=rows, chart=chart(dots)
    )
