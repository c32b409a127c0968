"""Writes what is made from the commands themselves: docs/reference/commands.md and the table that completion reads.

Beside them it writes docs/reference/policy.md, from the types of the policy file.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from pilotlight.tools.cli.command_table import FIRST, panels
from pilotlight.tools.cli.front.completion import TABLE
from pilotlight.tools.cli.front.front_help import OPTIONS
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


def completion_table() -> str:
    """What may be typed after each command, a command a line: JSON."""
    root = typer.main.get_command(build([]))
    own = {name: {"told": told} for name, told in OPTIONS.items()}
    commands = {name: line for rows in panels(True).values() for name, line in rows.items()}
    found: dict[str, Any] = {"": {"commands": commands, "options": own}}
    for name in commands:
        found |= _completed(name, root.commands[name])  # type: ignore[attr-defined]
    lines = (f"{json.dumps(path)}: {json.dumps(row, ensure_ascii=False)}" for path, row in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _completed(path: str, command: Any) -> dict[str, Any]:
    """A command's options, and those of the commands below it. An option that takes a value has ``values``."""
    below = getattr(command, "commands", {})
    named = (
        {"commands": {name: _plain(each.get_short_help_str(limit=200)) for name, each in below.items()}}
        if below
        else {}
    )
    options: dict[str, Any] = {}
    for option in command.params:
        shown = option.param_type_name == "option" and not option.hidden
        names = [*option.opts, *option.secondary_opts] if shown else []
        for name in names:
            row = {"told": _plain(option.help or "")} | ({"of": names[0]} if name != names[0] else {})
            if not option.is_flag:
                row["values"] = [item.value for item in option.shell_complete(None, "") if item.value]
            options[name] = row | ({"many": True} if option.multiple else {})
    options["--help"] = {"told": "its options"}
    found: dict[str, Any] = {path: named | {"options": options}}
    for name, each in below.items():
        found |= _completed(f"{path} {name}", each)
    return found


def _plain(said: str) -> str:
    """A text of the help in a line, without marks."""
    return " ".join(re.sub(r"\[/?bold\]", "", said).split())


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


def written() -> dict[Path, str]:
    """Every file with what it is to hold."""
    return {PAGE: page(), POLICY_PAGE: policy_page(), Path(TABLE): completion_table()}


if __name__ == "__main__":
    if sys.argv[1:] not in (["--write"], ["--check"]):
        sys.exit("usage: reference.py --write | --check")
    if sys.argv[1] == "--check":
        stale = [str(path) for path, text in written().items() if path.read_text("utf-8") != text]
        sys.exit(f"error: {', '.join(stale)}: not what the commands say; run: make reference" if stale else 0)
    PAGE.parent.mkdir(exist_ok=True)
    for path, text in written().items():
        path.write_text(text, "utf-8")
        print(path)
