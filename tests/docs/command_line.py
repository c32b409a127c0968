"""What is wrong with a command as it is written: a command or an option that is not there."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

from pilotlight.tools.cli.main import build

PLACE = re.compile(r"^[\[<(.]|\.\.\.|^[A-Z][A-Z_-]*$")
"""A word that stands for another."""


@cache
def _app() -> Any:
    return typer.main.get_command(build([]))


def wrong(words: list[str]) -> str:
    """What ``pilotlight WORDS`` names that there is not; empty where all is there."""
    command, path, rest = _app(), "pilotlight", list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-") and not PLACE.search(rest[0]):
        name = rest.pop(0).rstrip(".,:")
        if name not in command.commands:
            return f"{path} has no command {name}"
        command, path = command.commands[name], f"{path} {name}"
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "--debug"}
    return next((f"{path} has no option {each}" for each in _options(rest) if each not in known), "")


def _options(words: list[str]) -> Iterator[str]:
    for word in words:
        if re.match(r"--?[a-zA-Z]", word):
            yield word.partition("=")[0].rstrip(".,:")
