"""The one table: nothing in it is cut. Figures stay whole, words wrap, names fold.

Where even that is wider than the terminal, each row is told in lines of its own, a heading and its value in each.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

GAP = 2
"""Cells between two columns."""

NARROWEST = {"name": 12, "words": 24}
"""Cells below which a column is not made narrower for its longest word."""


class Column(NamedTuple):
    """A column. ``figure``: amounts, which are never broken; ``name``: may break anywhere; ``words``: between words."""

    heading: str = ""
    kind: Literal["figure", "name", "words"] = "words"
    style: str = ""


class Sheet:
    """A table that is printed as wide as its console allows."""

    def __init__(self, *columns: Column, title: str | Text = "") -> None:
        self._columns, self._title = columns, title
        self._rows: list[tuple[list[Text], str]] = []

    def add(self, *cells: str | Text, style: str = "") -> None:
        """Add a row: a cell for each column, as plain text."""
        self._rows.append(([Text(cell) if isinstance(cell, str) else cell for cell in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._title:
            yield Text(self._title, "bold") if isinstance(self._title, str) else self._title
        shown = [
            at for at, column in enumerate(self._columns) if column.heading or any(r[at].plain for r, _ in self._rows)
        ]
        widths = self._widths(shown, options.max_width)
        if widths is None:
            yield from self._told()
        elif self._rows or any(column.heading for column in self._columns):
            yield self._table(shown, widths)

    def _table(self, shown: list[int], widths: list[int]) -> Table:
        heads = any(self._columns[at].heading for at in shown)
        made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", show_header=heads)
        for at, width in zip(shown, widths, strict=True):
            column = self._columns[at]
            right = column.kind == "figure"
            made.add_column(
                column.heading, width=width, overflow="fold", style=column.style, justify="right" if right else "left"
            )
        for cells, style in self._rows:
            made.add_row(*(cells[at] for at in shown), style=style)
        return made

    def _widths(self, shown: list[int], room: int) -> list[int] | None:
        """The columns' widths: what they want, else less of the widest that can give; None where it is not enough."""
        wanted = [self._wanted(at) for at in shown]
        least = [min(self._least(at), want) for at, want in zip(shown, wanted, strict=True)]
        room -= GAP * (len(shown) - 1)
        if sum(least) > room:
            return None
        while sum(wanted) > room:
            at = max(range(len(wanted)), key=lambda at: (wanted[at] > least[at], wanted[at]))
            wanted[at] -= 1
        return wanted

    def _wanted(self, at: int) -> int:
        lines = [line for cell in self._cells(at) for line in cell.split("\n")]
        return max(map(cell_len, [*lines, self._columns[at].heading]), default=0)

    def _least(self, at: int) -> int:
        column = self._columns[at]
        heading = max(map(cell_len, column.heading.split()), default=0)
        if column.kind == "figure":
            return max([heading, *map(cell_len, self._cells(at))])
        longest = max((cell_len(word) for cell in self._cells(at) for word in cell.split()), default=0)
        return max(heading, min(longest, NARROWEST[column.kind]))

    def _cells(self, at: int) -> Iterator[str]:
        return (cells[at].plain for cells, _ in self._rows)

    def _told(self) -> Iterator[RenderableType]:
        """Each row in lines of its own, with an empty line between two."""
        across = max((cell_len(column.heading) for column in self._columns), default=0)
        for number, (cells, style) in enumerate(self._rows):
            if number:
                yield Text()
            made = Table.grid(padding=(0, GAP, 0, 0))
            if across:
                made.add_column(style="bold", width=across)
            made.add_column(overflow="fold")
            for column, cell in zip(self._columns, cells, strict=True):
                if cell.plain:
                    made.add_row(*([column.heading] if across else []), cell, style=style)
            yield made
