"""Writes docs/reference: commands.md from the commands themselves, policy.md from the types of the policy file."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from pilotlight.tools.cli.command_table import FIRST, panels
from pilotlight.tools.cli.main import build
from pilotlight.tools.lint.policy_keys import policy_keys

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
PAGE, POLICY_PAGE = FOLDER / "commands.md", FOLDER / "policy.md"
POLICY_HEAD = """# The policy file

`make reference` writes this page from the types of the policy (`shared/pilotlight/facts/policy.py`); a test compares
them. `examples/policy.yaml` is one of 20 lines. `pilotlight check FILE` names faults, `--fix` writes corrections,
and `pilotlight schema` prints its JSON Schema for editors. NAME is a name of your own, `[]` an entry of
a list.
"""
TIERS = {
    "start": "Start: the keys of a first policy",
    "often": "Often: what most policies come to",
    "rarely": "Rarely: what few clusters need",
}
HEAD = """# Commands

`make reference` writes this page from the commands themselves; a test compares them. Commands in bold are named
first by `pilotlight --help`. Every command takes `--debug` (the log, and the traceback of an error) and `--help`.
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


def policy_page() -> str:
    """The page of the policy's keys, a table a tier."""
    keys, lines = policy_keys(), [POLICY_HEAD]
    for tier, heading in TIERS.items():
        own = [key for key in keys if key.tier == tier]
        lines += [f"## {heading}", "", f"{len(own)} of {len(keys)} keys.", "", "| key | left out | |", "|---|---|---|"]
        lines += [f"| `{key.path}` | {f'`{key.default}`' if key.default else ''} | {key.told} |" for key in own]
        lines += [""]
    return "\n".join(lines)


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
    for path, text in ((PAGE, page()), (POLICY_PAGE, policy_page())):
        path.write_text(text, "utf-8")
        print(path)
