"""Output of commands: for people as wide as the terminal, or as ``COLUMNS`` says, wide in a pipe; or as JSON."""

import os
from typing import Literal

import msgspec
from rich.console import Console

from pilotlight.codec.printable import printable
from pilotlight.settings import environment

PIPE = 160
"""Columns where nobody says how many there are."""


def console() -> Console:
    """Standard output. Only what is printed with a style has one: figures and names are not coloured by their looks."""
    known = os.isatty(1) or environment().get("COLUMNS", "").isdecimal()
    return Console(width=None if known else PIPE, highlight=False)


def json_text(value: object, decimals: Literal["string", "number"] = "string") -> str:
    """The text that ``--json`` prints."""
    return msgspec.json.format(msgspec.json.Encoder(decimal_format=decimals).encode(printable(value))).decode()
