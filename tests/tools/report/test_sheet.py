"""A table at any width: nothing cut, figures whole, no line wider than its terminal."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from pilotlight.tools.report.tables.sheet import Column, Sheet

COLUMNS = (Column("pool", "name"), Column("dollars", "figure"), Column("what it is for"))

words = st.text("ABCDEF ", min_size=1, max_size=60)
names = st.text("GHIJK-/", min_size=1, max_size=60)
dollars = st.integers(0, 10**12).map(lambda cents: f"${cents / 100:,.2f}")


def printed(sheet: Sheet, width: int) -> list[str]:
    """The lines on a terminal of that width."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(sheet)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@given(st.lists(st.tuples(names, dollars, words), min_size=1, max_size=4), st.integers(36, 200))
def test_nothing_is_cut_at_any_width(rows: list[tuple[str, str, str]], width: int) -> None:
    """Every figure is whole in one line, every letter of names and words is there, and every line fits."""
    sheet = Sheet(*COLUMNS)
    for row in rows:
        sheet.add(*row)
    lines = printed(sheet, width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert "…" not in text
    assert all(figure in text for _, figure, _ in rows)
    for letters, column in (("GHIJK-/", 0), ("ABCDEF", 2)):
        wanted = sum(row[column].count(letter) for row in rows for letter in letters)
        assert sum(text.count(letter) for letter in letters) == wanted


def test_what_does_not_fit_is_told_in_lines_of_its_own() -> None:
    """A row that is too wide for columns has a line for each heading; a cell without words has none."""
    sheet = Sheet(*(Column(name, "figure") for name in ("billed", "metered", "held")))
    sheet.add("$1,234,567.89", "$2,345,678.90", "")
    sheet.add("$3.00", "$4.00", "$5.00")
    assert printed(sheet, 30) == [
        "billed   $1,234,567.89", "metered  $2,345,678.90", "",
        "billed   $3.00", "metered  $4.00", "held     $5.00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        pytest.param(40, ["pool  dollars  what it is for", "t4      $1.00  idle [bold]"], id="what is wide enough"),
        pytest.param(
            24,
            ["               what it", "pool  dollars  is for", "t4      $1.00  idle", "               [bold]"],
            id="what is too narrow for its words",
        ),
    ],
)
def test_words_give_way_before_figures(width: int, lines: list[str]) -> None:
    """Headings and words wrap between words; square brackets are text."""
    sheet = Sheet(*COLUMNS)
    sheet.add("t4", "$1.00", "idle [bold]")
    assert printed(sheet, width) == lines


def test_without_headings_and_with_empty_columns() -> None:
    """A column that nobody filled takes no room, and a title stands above."""
    sheet = Sheet(Column(), Column(kind="figure"), Column(), title=Text("by team"))
    sheet.add("nlp", "$1.00", "")
    assert printed(sheet, 40) == ["by team", "nlp  $1.00"]
