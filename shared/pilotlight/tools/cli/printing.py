"""Output of commands: for people as wide as the terminal, or as ``COLUMNS`` says, wide in a pipe; or as JSON."""

import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import typer

from pilotlight.codec.printable import printable
from pilotlight.settings import environment
from pilotlight.tools.cli.terminal import console_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPE = 160
"""Columns where nobody says how many there are."""


def console() -> "Console":
    """Standard output. Only what is printed with a style has one: figures and names are not coloured by their looks.
    Where nobody says how wide it is, tables are as wide as ``PIPE``; a line that is no table's stays one there.
    """
    known = os.isatty(1) or environment().get("COLUMNS", "").isdecimal()
    out = console_of(width=None if known else PIPE, highlight=False)
    return out if known else _unwrapped(out)


def _unwrapped(out: "Console") -> "Console":
    """The console, which breaks no line of text."""
    from rich.console import Group
    from rich.text import Text

    whole = out.print

    def print_(*objects: Any, **options: Any) -> None:
        if len(objects) == 1 and isinstance(objects[0], Group):
            for part in objects[0].renderables:
                print_(part, **options)
            return
        lines = all(isinstance(one, str | Text) for one in objects)
        whole(*objects, **{"soft_wrap": lines, **options})

    out.print = print_  # type: ignore[method-assign]
    return out


def say(lines: Iterable[str]) -> None:
    """Print lines of plain text. On a terminal a long one goes on below its own text, broken between words; in a pipe a
    line stays one, for programs that read it."""
    width = get_terminal_size().columns if os.isatty(1) else 0
    for line in lines:
        typer.echo(fit_line(line, width) if 0 < width < len(line) else line)


def fit_line(line: str, width: int) -> str:
    """The line in lines of a width; those that follow stand below its text, not below its label."""
    indent = " " * _hang(line, width)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, expand_tabs=False
    )


def fit_text(line: "Text", out: "Console") -> "Sequence[Text]":
    """The same of a line with styles; in a pipe the line itself."""
    if not os.isatty(1) or len(line.plain) <= out.width:
        return [line]
    from rich.text import Text

    hang = _hang(line.plain, out.width)
    first, *others = line[hang:].wrap(out, out.width - hang)
    return [line[:hang] + first, *(Text(" " * hang) + each for each in others)]


def _hang(line: str, width: int) -> int:
    label = _LABEL.match(line)
    hang = len(label[0]) if label and len(label[0]) <= width // 3 else 0
    return hang or min(len(line) - len(line.lstrip(" ")) + 2, width // 3)


_LABEL = re.compile(r" *[\w ]*?\w {2,}(?=\S)")
"""A label before its text, as "  buy       "."""


def json_text(value: object, decimals: Literal["string", "number"] = "string") -> str:
    """The text that ``--json`` prints."""
    return msgspec.json.format(msgspec.json.Encoder(decimal_format=decimals).encode(printable(value))).decode()
