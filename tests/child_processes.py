"""Processes that a process began, by what Linux says of it, and a wait until something is so."""

import time
from collections.abc import Callable
from pathlib import Path

HANGS_S = 300.0
"""A command that takes longer hangs."""


def children(pid: int) -> list[int]:
    """The processes that a process began."""
    try:
        return [
            int(each)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for each in (task / "children").read_text().split()
        ]
    except OSError:
        return []


def until(happens: Callable[[], object]) -> None:
    """Wait until it is so."""
    last = time.monotonic() + HANGS_S
    while not happens():
        assert time.monotonic() < last, "it never came to that"
        time.sleep(0.01)
