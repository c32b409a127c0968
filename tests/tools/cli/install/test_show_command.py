"""`pilotlight show`: what messages send people to is held by a wheel, and is printed by this command."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from pilotlight.errors import BadInput
from pilotlight.tools.cli.install.show_command import held_files, register

ROOT = Path(__file__).resolve().parents[4]
PACKAGE = ROOT / "shared" / "pilotlight"
FOLDERS = "docs|infra|examples|data|policies|events|rbac|placement|admission|handback|functions|scripts|bench|tests"
PATH = re.compile(rf"(?<![\w/.-])(?:{FOLDERS})/[\w./-]*\w")
MAKE = re.compile(r"\bmake (?:setup|run|test|demo|serve|image|picture|check|bundle|reference)\b")


def run(*words: str) -> Result:
    """The command's outcome."""
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, [*words], catch_exceptions=False)


def test_it_lists_what_there_is_and_prints_each() -> None:
    """One path a line, and the file behind it as it lies here."""
    listed = run().stdout.splitlines()
    assert {"docs/guides/eks.md", "infra/kubernetes/rbac/reclaim.yaml", "events/README.md"} <= {*listed}
    for path in listed:
        assert run(path).stdout == (ROOT / path).read_text()


@pytest.mark.parametrize("path", ["docs/guides/ekss.md", "/etc/passwd", "../pyproject.toml", "docs/guides", "x"])
def test_another_path_is_refused(path: str) -> None:
    """No other file of the machine is printed; the way to the list is named."""
    with pytest.raises(BadInput, match=r"no such file comes with Pilotlight.*; pilotlight show lists them all"):
        run(path)


def wheel_folders() -> tuple[str, ...]:
    """Files and folders of the checkout that the wheel holds."""
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    return tuple(built["force-include"])


def said() -> Iterator[tuple[str, str]]:
    """Every text of the package that is no docstring, and the docstrings that are a command's help, with its place."""
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text())
        helps = "tools/cli" in file.as_posix()
        notes = {id(text) for text in _notes(tree, helps)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
                yield f"{file.relative_to(ROOT)}:{node.lineno}", node.value
    for file in sorted(PACKAGE.rglob("*.html")):
        yield str(file.relative_to(ROOT)), file.read_text()


def _notes(tree: ast.Module, helps: bool) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        for line in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            told = helps and isinstance(node, ast.FunctionDef)
            if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and not told:
                yield line.value


def test_messages_name_no_file_that_a_wheel_lacks() -> None:
    """A path in a message, a help or a page is held by the wheel in full; a clone is named where one is needed."""
    held, wrong = wheel_folders(), []
    for place, text in said():
        for path in PATH.findall(text):
            data = path == text.strip("/") and (ROOT / "infra" / "kubernetes" / path).exists()
            inside = any(f"{path}/".startswith(f"{own}/") or own.startswith(f"{path}/") for own in held)
            if not (data or (inside and (ROOT / path).exists()) or "from a clone" in text):
                wrong.append(f"{place}: {path}")
        if MAKE.search(text) and "clone" not in text and "sdist" not in text:
            wrong.append(f"{place}: {MAKE.findall(text)}")
    assert wrong == []


def test_every_path_that_messages_say_to_show_is_shown() -> None:
    """`pilotlight show PATH` of a message prints that path."""
    named = {path for _, text in said() for path in re.findall(r"pilotlight show ([\w./-]*\w)", text)}
    assert len(named) > 10
    folders = tuple(f"{folder}/" for folder in FOLDERS.split("|"))
    assert {path for path in named if path.startswith(folders)} - {*held_files(), "events/samples"} == set()
