"""Writes docs/reference/commands.md from the commands themselves: each with its text, its arguments and its options."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from pilotlight.tools.cli.command_table import FIRST, panels
from pilotlight.tools.cli.main import build

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "commands.md"
HEAD = """# Commands

`make reference` writes this page from the commands themselves; a test compares them. Those in bold are the ones that
`pilotlight --help` names first. Every command takes `--debug` (the log, and the traceback of an error) and `--help`.
"""


def page() -> str:
    """The page."""
    commands = typer.main.get_command(build([])).commands  # type: ignore[attr-defined]
    lines = [HEAD]
    for panel, rows in panels(True).items():
        lines += [f"- {panel}: " + ", ".join(_link(name) for name in rows)]
    for panel, rows in panels(True).items():
        lines += ["", f"## {panel}"]
        for name in rows:
            lines += _command(f"pilotlight {name}", commands[name], "###")
    return "\n".join(lines) + "\n"


def _link(name: str) -> str:
    shown = f"[{name}](#pilotlight-{name})"
    return f"**{shown}**" if name in FIRST else shown


def _command(path: str, command: Any, mark: str) -> Iterator[str]:
    """A command's part, or a group's with those of its commands."""
    yield f"\n{mark} {path}\n"
    yield _text(command.help or "")
    if below := getattr(command, "commands", None):
        for name, each in below.items():
            yield from _command(f"{path} {name}", each, f"{mark}#")
        return
    rows = [_row(parameter) for parameter in command.params]
    if rows:
        yield "\n| argument or option | |\n|---|---|"
        yield from rows


def _row(parameter: Any) -> str:
    """An argument or an option: how it is written, what it is, what it is where it is left out."""
    if parameter.param_type_name == "argument":
        shown = parameter.metavar or parameter.name.upper()
        shown = shown if parameter.required else f"[{shown}]"
    else:
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
        kind = "" if getattr(parameter, "is_flag", False) else f" {parameter.metavar or 'VALUE'}"
        shown = f"{names}{kind}"
    told = _text(getattr(parameter, "help", None) or "").replace("\n", " ")
    default = parameter.default
    if parameter.required:
        told += " Required."
    elif isinstance(default, int | float | str) and default not in ("", 0, False) and not isinstance(default, bool):
        told += f" Default: `{default}`."
    return f"| `{shown.replace('|', '/')}` | {told.strip().replace('|', '/')} |"


def _text(said: str) -> str:
    """A text of the help, as Markdown."""
    marked = re.sub(r"\[/?bold\]", "`", said.strip())
    return re.sub(r"(?<!`)([<*])(?![^`]*`)", r"\\\1", marked)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: reference.py --write")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), "utf-8")
    print(PAGE)
