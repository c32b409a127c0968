"""Statements of the engine and of the tools at a revision, docstrings aside; beside those of another.

Usage: python bench/statements.py [--json] [REVISION] [--against 7f3a1255]
The engine is ``shared/pilotlight`` without ``tools/``; before there was that folder, without the files that a bundle
left out (``scripts/bundle.py`` of that revision). Without a revision the files are counted as they lie here.
"""

import argparse
import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "shared/pilotlight"


class Statements(NamedTuple):
    """Statements of both wings."""

    engine: int
    tools: int


def statements(revision: str = "") -> Statements:
    """Statements of both wings at a revision, or as the files lie here."""
    files = dict(_at(revision) if revision else _here())
    tools: tuple[str, ...] = (f"{PACKAGE}/tools",)
    if not any(map(partial(_within, tools), files)):
        tools = tuple(f"{PACKAGE}/{path}" for path in _left_out(revision))
    counts = Counter[bool]()
    for path, text in files.items():
        counts[_within(tools, path)] += _count(text)
    return Statements(engine=counts[False], tools=counts[True])


def _here() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def _at(revision: str) -> Iterator[tuple[str, str]]:
    for path in _git("ls-tree", "-r", "--name-only", revision, PACKAGE).splitlines():
        if path.endswith(".py"):
            yield path, _git("show", f"{revision}:{path}")


def _left_out(revision: str) -> Iterator[str]:
    """The paths that no bundle of an earlier revision held."""
    for node in ast.parse(_git("show", f"{revision}:scripts/bundle.py")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("LEFT_OUT", "OF_COMMANDS"):
            yield from ast.literal_eval(node.value)


def _within(folders: tuple[str, ...], path: str) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _count(text: str) -> int:
    return sum(isinstance(node, ast.stmt) and not _is_docstring(node) for node in ast.walk(ast.parse(text)))


def _is_docstring(node: ast.stmt) -> bool:
    """True for any text that stands alone: the docstring of a field too."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def main() -> int:
    """Print both figures; with ``--against`` those of another revision too."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("revision", nargs="?", default="", help="a revision; left out: the files here")
    words.add_argument("--against", default="", metavar="REVISION", help="another, beside it")
    words.add_argument("--json", action="store_true", help="print JSON")
    options = words.parse_args()
    asked = [options.revision, *([options.against] if options.against else [])]
    found = {name or "here": statements(name)._asdict() for name in asked}
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    for name, wings in found.items():
        print(f"{name}: " + ", ".join(f"{wing} {count:,}" for wing, count in wings.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
