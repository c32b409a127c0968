"""Branches, lines and arguments of every function of the package, the most first.

Usage: python bench/branches.py [--json] [--worst 40]
A branch is each ``if``, ternary, loop, ``except``, ``case``, each ``and`` and ``or`` beyond its first operand, and each
``for`` and ``if`` of a comprehension; functions inside a function are counted apart. Lines include the docstring.
Arguments are without ``self``; those of commands are their options, which are not bounded.
"""

import argparse
import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pilotlight.tools.cli.printing import console
from pilotlight.tools.report.tables.sheet import Column, Sheet

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("shared/pilotlight", "functions")
ONE = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


class Figures(NamedTuple):
    """Figures of one function."""

    branches: int
    lines: int
    arguments: int
    name: str

    @property
    def is_command(self) -> bool:
        """True for what a person runs: its arguments are options."""
        return "_command.py:" in self.name


def functions() -> list[Figures]:
    """Every function of the package, those with the most branches first."""
    files = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return sorted((found for path in files for found in _of_file(path)), reverse=True)


def _of_file(path: Path) -> Iterator[Figures]:
    where = path.relative_to(ROOT).as_posix().removeprefix("shared/pilotlight/")
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, FUNCTION):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Figures(sum(map(_branches, _own(node))), lines, _arguments(node), f"{where}:{node.name}")


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """All that is in a function, but what is in functions and classes inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*FUNCTION, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def _branches(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, ONE))


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    args = function.args
    named = [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return len(named) - (named[:1] in (["self"], ["cls"]))


def main() -> int:
    """Print the functions with the most branches, and how many are above 15 and 20."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--json", action="store_true", help="print JSON")
    words.add_argument("--worst", type=int, default=20, metavar="N", help="print so many (20)")
    options = words.parse_args()
    found = functions()
    counts = {
        "functions": len(found),
        "above 15 branches": sum(one.branches > 15 for one in found),
        "above 20 branches": sum(one.branches > 20 for one in found),
        "above 50 lines": sum(one.lines > 50 for one in found),
        "above 8 arguments, commands aside": sum(one.arguments > 8 and not one.is_command for one in found),
    }
    worst = found[: options.worst]
    if options.json:
        print(json.dumps({**counts, "worst": [one._asdict() for one in worst]}, indent=1))
        return 0
    shown = Sheet(Column("function", "name"), *(Column(name, "figure") for name in Figures._fields[:3]))
    for one in worst:
        shown.add(one.name, str(one.branches), str(one.lines), str(one.arguments))
    console().print(shown)
    print("; ".join(f"{name}: {count:,}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
