"""Text that moves no cursor, hides nothing and turns nothing around: names and messages that are printed are others'.

Such characters are shown by their escapes (``\\u001b``), which JSON reads as the same characters.
"""

import re
import sys
from functools import cache
from typing import IO, TYPE_CHECKING, Any

from pilotlight.settings import environment
from pilotlight.tools.cli.output import go_on_unread

if TYPE_CHECKING:
    from rich.console import Console

UNSAFE = (
    r"\x00-\x08\x0b-\x1f"  # Control characters but tab and new line; carriage return overwrites a line.
    r"\x7f-\x9f"  # Delete, and the second set of controls, which some terminals take for ESC sequences.
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Marks that turn the direction of text.
    r"\u2028\u2029\ufeff"  # Ends of lines that nobody sees, and the mark of byte order.
    r"\ud800-\udfff"  # Halves of characters, which no terminal can be sent.
)
_UNSAFE = re.compile(f"[{UNSAFE}]")


def visible_text(text: str) -> str:
    """The text as a terminal may have it."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def plain_locale() -> bool:
    """Whether a person says that this terminal has plain letters alone. Python itself sets LC_CTYPE where LANG is C."""
    said = environment()
    own = said.get("LC_CTYPE", "")
    return (said.get("LC_ALL") or (own if own != "C.UTF-8" else "") or said.get("LANG")) in ("C", "POSIX")


class Shown:
    """A text stream that is written to by that rule. Rich writes to the stream behind: its own codes are meant."""

    def __init__(self, stream: IO[str]) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write it as it may be shown."""
        try:
            self.rich_proxied_file.write(visible_text(text))
        except BrokenPipeError:
            go_on_unread(self.fileno())
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            self.rich_proxied_file.flush()
        except BrokenPipeError:
            go_on_unread(self.fileno())

    def writelines(self, lines: Any) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> Any:
        """The bytes behind; on a terminal they are written as text is."""
        return _ShownBytes(self)

    def isatty(self) -> bool:
        """True where it is a terminal."""
        return self.rich_proxied_file.isatty()

    def __getattr__(self, name: str) -> Any:
        """Whatever else a stream has."""
        return getattr(self.rich_proxied_file, name)


class _ShownBytes:
    def __init__(self, stream: Shown) -> None:
        self._stream = stream

    def write(self, content: bytes) -> int:
        if self._stream.isatty():
            self._stream.write(content.decode(errors="backslashreplace"))
            return len(content)
        try:
            self._stream.rich_proxied_file.buffer.write(content)  # type: ignore[attr-defined]
        except BrokenPipeError:
            go_on_unread(self._stream.fileno())
        return len(content)

    def flush(self) -> None:
        self._stream.flush()


def console_of(**options: Any) -> "Console":
    """A console of Rich by that rule. Rich is imported here, for commands that print plain lines never need it."""
    from rich.console import Console

    if isinstance(sys.stdout, Shown):
        teach_rich()
    return Console(**options)


@cache
def teach_rich() -> None:
    """Have Rich do the same with every text it is given: its own table strips a few of these characters.

    A reader that has gone is no error to it either. Where a terminal has plain letters alone its boxes are drawn of
    these; else Rich takes every output for UTF-8.
    """
    from rich import control
    from rich.console import Console

    Console.on_broken_pipe = lambda _: go_on_unread()  # type: ignore[method-assign, assignment]

    table: dict[int, Any] = control._CONTROL_STRIP_TRANSLATE
    table.update({ord(bad): visible_text(bad) for bad in _UNSAFE.findall("".join(map(chr, range(0x10000))))})
    if plain_locale() or not (sys.stdout.encoding or "utf").lower().startswith("utf"):
        Console.encoding = property(lambda _: "ascii")  # type: ignore[method-assign, assignment]
