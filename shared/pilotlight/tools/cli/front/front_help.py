"""Help of the command itself, written from the table of commands alone: no module of a command is imported for it."""

from shutil import get_terminal_size
from textwrap import wrap

from pilotlight.tools.cli.command_table import FIRST, panels

GAP = 2
WIDEST = 100

ABOUT = "Keeps GPU nodes at zero, buys them when a pod needs one, releases them when keeping costs more."
OPTIONS = {
    "--all": "every command",
    "--debug": "the log, and the traceback of an error",
    "--version": "which version this is",
    "--install-completion": "completion for this shell",
    "--show-completion": "the same, to copy",
    "--help": "this page, as -h and help; after a command: its options",
}
ASKED = ({"--help"}, {"-h"}, {"--all"}, {"--help", "--all"}, {"-h", "--all"})
"""Words that are answered here."""


def front_help(every: bool = False, only: str = "") -> str:
    """The page: of the first commands, of all, or of one panel."""
    width = min(WIDEST, get_terminal_size((WIDEST, 24)).columns)
    found = panels(every)
    if only:
        found = {only: found[only]}
    lines = ["Usage: pilotlight COMMAND [OPTIONS]", "", *wrap(ABOUT, width)]
    broad = max(len(name) for commands in [*found.values(), {} if only else OPTIONS] for name in commands)
    for panel, commands in found.items():
        lines += ["", panel, *_rows(commands, broad, width)]
    if not only:
        lines += ["", "Options", *_rows(OPTIONS, broad, width)]
    more = len([name for commands in panels(True).values() for name in commands]) - len(FIRST)
    if not every:
        lines += ["", f"{more} more commands: pilotlight --all" if not only else "All commands: pilotlight --all"]
    return "\n".join(lines) + "\n"


def _rows(rows: dict[str, str], broad: int, width: int) -> list[str]:
    """Names beside their lines, which wrap where the terminal is narrow."""
    left = GAP + broad + GAP
    found = []
    for name, line in rows.items():
        first, *others = wrap(line, max(20, width - left))
        found += [f"{'':{GAP}}{name:<{broad}}{'':{GAP}}{first}", *(f"{'':{left}}{other}" for other in others)]
    return found
