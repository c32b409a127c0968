"""The table of commands, the help that is written from it, and the reference page that is written from the commands."""

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
import typer

import reference
from pilotlight.tools.cli.command_table import COMMANDS, FIRST, module_of, panels
from pilotlight.tools.cli.front.front_help import OPTIONS
from pilotlight.tools.cli.main import _name

RUN = "import sys; sys.argv[0] = 'pilotlight'; from pilotlight.tools.cli.entry import run; run()"
MOST = 17
LINE = 70


def run(*words: str, code: str = RUN, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "COMP_WORDS", "COMP_CWORD")}
    return subprocess.run(
        [sys.executable, "-c", code, *words], env={**own, **environ}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("module", COMMANDS)
def test_a_module_registers_what_the_table_says(module: str) -> None:
    """No command more and none less, each with a line that fits beside its name."""
    app = typer.Typer()
    import_module(f"pilotlight.tools.cli.{module}").register(app)
    assert {*map(_name, app.registered_commands), *map(_name, app.registered_groups)} == {*COMMANDS[module]}
    assert all(line and len(line) <= LINE and not line.endswith(".") for line in COMMANDS[module].values())


def test_no_group_has_one_command() -> None:
    """Such a group is the command itself."""
    for module in COMMANDS:
        app = typer.Typer()
        import_module(f"pilotlight.tools.cli.{module}").register(app)
        for group in app.registered_groups:
            assert group.typer_instance is not None
            assert len(group.typer_instance.registered_commands) > 1, group.name


def _shown(text: str) -> set[str]:
    return {line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] != " "} - {*OPTIONS}


def test_the_help_names_few_commands_and_all_where_asked() -> None:
    """Seventeen, then every one; each panel has its heading."""
    assert len(FIRST) == MOST
    assert _shown(run("--help").stdout) == {*FIRST}
    assert _shown(run("--all").stdout) == {name for commands in COMMANDS.values() for name in commands}
    for panel in panels(True):
        assert f"\n{panel}\n" in run("--all", "--help").stdout


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_help_fits_the_terminal(columns: int) -> None:
    """No line is wider."""
    assert max(map(len, run("--all", COLUMNS=str(columns)).stdout.splitlines())) <= columns


IMPORTED = "import atexit, sys; atexit.register(lambda: print(*sys.modules, sep='\\n', file=sys.stderr)); "
HEAVY = {"typer", "rich", "msgspec", "importlib.metadata", "pilotlight.settings"}
"""Modules that take a tenth of a second to import."""


def test_the_help_imports_nothing_of_a_command() -> None:
    """It is written from the table alone, so it takes no longer than Python itself."""
    done = run("--help", code=IMPORTED + RUN)
    assert done.returncode == 0
    assert HEAVY & {*done.stderr.split()} == set()


def test_a_name_that_is_none_imports_no_command() -> None:
    """What is wrong is said from the table."""
    done = run("nosuch", code=IMPORTED + RUN)
    assert done.returncode == 2
    assert done.stderr.startswith("error: No such command 'nosuch'; see pilotlight --help\n")
    assert module_of("nosuch") == ""
    assert not any(f"pilotlight.tools.cli.{module}" in done.stderr.split() for module in COMMANDS)


def test_the_reference_page_is_what_the_commands_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/reference/commands.md is what `make reference` writes."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert reference.PAGE.read_text("utf-8") == reference.page(), "run: make reference"


def test_the_start_panel_alone_answers_a_terminal(tmp_path: Path) -> None:
    """`pilotlight` without words: on a terminal the commands to begin with, else the help; exit code 2 both times."""
    import pty

    master, slave = pty.openpty()
    command = [sys.executable, "-c", RUN]
    environ: Mapping[str, str] = {**os.environ, "COLUMNS": "80"}
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=environ, cwd=tmp_path) as process:
        process.wait(60)
        shown = os.read(master, 100_000).decode().replace("\r", "")
    for end in (master, slave):
        os.close(end)
    assert process.returncode == 2
    assert _shown(shown) == {*panels(False)["Start"]}
    assert "All commands: pilotlight --all" in shown
    assert _shown(run().stdout) == {*FIRST}


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("command", ["check", "demo", "gpus"])
def test_a_help_is_as_wide_as_the_terminal(command: str, width: int) -> None:
    """Its lines end where the terminal does: the first word of the next would not have had room."""
    lines = [line.strip() for line in run(command, "--help", COLUMNS=str(width)).stdout.splitlines()]
    text = lines[3 : next(i for i, line in enumerate(lines) if line.startswith("╭"))]
    assert len([line for line in text if line]) > 3
    pairs = [(line, after) for line, after in pairwise(text) if line and after]
    assert all(len(line) + 1 + len(after.split()[0]) > width - 2 for line, after in pairs)
