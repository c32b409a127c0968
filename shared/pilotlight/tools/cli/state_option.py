"""``--state``: where a command that opens the state finds it; and one line where there is nothing in it yet."""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from pilotlight.settings import OLD_HOME, Settings, deployed_settings, share

NAME = "state_address"
Address = Annotated[
    str,
    typer.Option(
        "--state", metavar="ADDRESS", help="Where the state lies, instead of PILOTLIGHT_STATE: sqlite:PATH and others."
    ),
]


def with_state(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the option, and with the line."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        if address := options.pop(NAME, ""):
            share("PILOTLIGHT_STATE", address)
        if said := nothing_yet(deployed_settings()):
            sys.stderr.write(f"{said}\n")
        return command(*args, **options)

    taken = signature(command)
    option = Parameter(NAME, Parameter.KEYWORD_ONLY, default="", annotation=Address)
    run.__signature__ = taken.replace(parameters=[*taken.parameters.values(), option])  # type: ignore[attr-defined]
    return run


def nothing_yet(settings: Settings) -> str:
    """One line where the state is a file that is not there, or holds nothing; else nothing."""
    kind, _, where = settings.state.partition(":")
    if kind != "sqlite" or not where:
        return ""
    if not Path(where).exists():
        old = OLD_HOME / "state.db"
        named = settings.environ.get("PILOTLIGHT_STATE") or settings.environ.get("PILOTLIGHT_HOME")
        hint = f"; one of before is in {old}: --state sqlite:{old}" if old.exists() and not named else ""
        return f"state: {settings.state} is new{hint}"
    from pilotlight.adapters.state.sqlite import SqliteState

    return "" if SqliteState(Path(where)).scan("", limit=1).items else f"state: {settings.state} is empty"
