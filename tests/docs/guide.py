"""A guide as a person follows it: its commands in a shell, and what it says that they print.

A block of ``console`` has commands after "$ " and below each what it prints: all of it, or nothing where nothing is
shown. "..." alone stands for any lines, at the end of a line for the rest of it. What differs from run to run (times,
ids, addresses) is not compared. Another block has commands alone, of which nothing is shown.
"""

import re
from typing import NamedTuple

_VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC"), "<time>"),
    (re.compile(r"\d{14}-[0-9a-f]{8}"), "<decision>"),
    (re.compile(r"\b\d\d-\d\d \d\d:\d\d:\d\d\b"), "<time>"),
    (re.compile(r"\b\d+:[0-9a-f]{64}\b"), "<anchor>"),
    (re.compile(r"\btest/\d{8}T\d{6}\b"), "<alert>"),
    (re.compile(r"command-\d+T\d+"), "<tick>"),
    (re.compile(r"\b\d+ records\b"), "<records>"),
    (re.compile(r"gpu-test-[a-z0-9]{5}\b"), "<pod>"),
    (re.compile(r"https://[\w.:]+: answers, Kubernetes v\S+"), "<server>"),
)


class Said(NamedTuple):
    """A command, and the lines that it is said to print; None where the page does not show them."""

    command: str
    lines: tuple[str, ...] | None


def differs(said: Said, printed: str) -> str:
    """Where what was printed is not what is shown; empty where it is."""
    if said.lines is None:
        return ""
    left = [_plain(line) for line in printed.rstrip("\n").split("\n")] if printed.strip() else []
    skips = False
    for line in map(_plain, said.lines):
        if line == "...":
            skips = True
            continue
        found = next((n for n, each in enumerate(left) if _same(line, each)), None)
        if found is None or (found and not skips):
            return f"{said.command}: shown {line!r}, printed {left[:1] if found is None else left[:found]}"
        left, skips = left[found + 1 :], False
    return "" if skips or not left else f"{said.command}: printed besides {left}"


def _same(shown: str, printed: str) -> bool:
    return printed.startswith(shown[: -len("...")].rstrip()) if shown.endswith("...") else shown == printed


def _plain(line: str) -> str:
    for pattern, name in _VARIES:
        line = pattern.sub(name, line)
    return line.rstrip()
