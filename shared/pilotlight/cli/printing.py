"""What a command prints for people: as wide as the terminal, or as ``COLUMNS`` says; wide in a pipe."""

import os

from rich.console import Console

from pilotlight.settings import environment

PIPE = 160
"""Columns where nobody says how many there are."""


def console() -> Console:
    """Standard output. Only what is printed with a style has one: figures and names are not coloured by their looks."""
    known = os.isatty(1) or environment().get("COLUMNS", "").isdecimal()
    return Console(width=None if known else PIPE, highlight=False)
