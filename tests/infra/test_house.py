"""Rules of the house that no linter knows: sizes and names, sentences on tests, short functions, no odds and ends."""

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from house_figures import (
    Figure,
    bare_names,
    file_lengths,
    folder_sizes,
    import_circles,
    question_lines,
    repeated_names,
    silent_rooms,
    undocumented_fields,
)

ROOT = Path(__file__).resolve().parents[2]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
FUNCTIONS = sorted((ROOT / "functions").glob("*/main.py"))
SOURCES = [path for room in ("shared", "functions", "scripts", "bench") for path in sorted((ROOT / room).rglob("*.py"))]

MOST: dict[Callable[[], Figure], float] = {
    folder_sizes: 20,
    file_lengths: 350,
    repeated_names: 25,
    question_lines: 5,
    bare_names: 2,
    silent_rooms: 0,
    undocumented_fields: 0,
    import_circles: 0,
}
"""Bounds of the house's figures."""


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", TESTS, ids=_name)
def test_every_test_says_its_behaviour(path: Path) -> None:
    """Each test function has a docstring that is a sentence."""
    silent = [
        f"{node.name} (line {node.lineno})"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if not (ast.get_docstring(node) or "").split("\n\n")[0].rstrip().endswith((".", "?"))
    ]
    assert silent == []


@pytest.mark.parametrize("path", FUNCTIONS, ids=_name)
def test_a_function_is_a_door_and_nothing_more(path: Path) -> None:
    """A main.py is at most 25 lines and holds one function."""
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 25
    assert sum(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(text))) == 1


@pytest.mark.parametrize(("measure", "most"), MOST.items(), ids=[each.__name__ for each in MOST])
def test_the_house_keeps_its_bounds(measure: Callable[[], Figure], most: float) -> None:
    """No figure of the house is above its bound; the worst five of each are printed."""
    figure = measure()
    print(figure.shown(most))
    assert figure.total <= most


def test_no_two_test_files_share_a_name() -> None:
    """Tests and what they share are imported by name alone, so a name stands for one file of all folders."""
    loose = [path for path in sorted((ROOT / "tests").rglob("*.py")) if not (path.parent / "__init__.py").exists()]
    borne = Counter(path.name for path in loose if path.name != "conftest.py")
    assert [name for name, times in borne.items() if times > 1] == []


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    """No file or package is named for having no subject."""
    drawers = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}
    assert [_name(path) for path in SOURCES if drawers & {path.stem, path.parent.name}] == []


def test_one_name_has_one_meaning() -> None:
    """In the rooms that decide and act no two files give a public class or type the same name."""
    package = ROOT / "shared" / "pilotlight"
    rooms = [package / name for name in ("ports", "facts", "decide", "flow", "state_schema")]
    named: dict[str, list[str]] = {}
    for path in (path for room in rooms for path in sorted(room.rglob("*.py"))):
        for name in _types(path):
            named.setdefault(name, []).append(_name(path))
    assert {name: paths for name, paths in named.items() if len(paths) > 1} == {}


def _types(path: Path) -> set[str]:
    """The public classes and type aliases of a file, which begin with a capital and have small letters."""
    body = ast.parse(path.read_text("utf-8")).body
    assigned = {t.id for node in body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)}
    names = {node.name for node in body if isinstance(node, ast.ClassDef)} | assigned
    return {name for name in names if name[0].isupper() and not name.isupper()}
