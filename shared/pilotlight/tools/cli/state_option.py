"""``--state`` of commands that open the state, ``--policy`` of those that go by one, and a line on a new state.

A question writes nothing: of a state that is not there it asks an empty one in memory.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.settings import OLD_HOME, Settings, deployed_settings, read
from pilotlight.tools.cli.served import header, lend, nothing_set_up, serve_beside, settings_of

NAME = "state_address"
Address = Annotated[
    str,
    typer.Option(
        "--state", metavar="ADDRESS", help="Where the state lies, instead of PILOTLIGHT_STATE: sqlite:PATH and others."
    ),
]


POLICY = "policy_address"
PolicyFile = Annotated[
    str, typer.Option("--policy", help="Policy file; left out: PILOTLIGHT_POLICY, or the built-in one.")
]
JUDGES = {
    *("status", "pools", "gpus", "why", "budget", "queues", "shadow report", "shadow canary"),
    *("alerts test", "alerts list", "alerts redeliver", "alerts ack", "reclaim list", "reclaim snooze", "reclaim wake"),
    *("serve", "pause", "resume", "approve", "drill", "spot", "commitments", "waste", "targets"),
}
"""Commands that go by a policy and have no such option of their own."""

BEGINS = ("pause", "serve", "reconcile", "takeover")
"""Commands that begin a state, beside those that carry it; all others ask, or change what is there."""
CARRIES = ("state import", "state init")


def with_state(command: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The command of that name with the option and the line; where nothing is set up, beside a serve that runs."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        given = options.pop(NAME, "")
        if given:
            _is_one(given)
        with lend({"PILOTLIGHT_STATE": given} if given else {}):
            settings = deployed_settings()
            _SHOWN["state"] = settings.state
            lent = {} if name == "serve" else settings_of(serve_beside(settings), settings)
            said = nothing_yet(settings)
            # A question makes no folder; who watches sees what is made meanwhile.
            if said and name not in (*BEGINS, *CARRIES) and not options.get("watch") and not is_there(settings):
                lent["PILOTLIGHT_STATE"] = "memory:"
            with lend(lent), _telling(said):
                if options.get("watch"):
                    tell_state()
                return command(*args, **options)

    return _with_option(run, NAME, Address)


def _is_one(address: str) -> None:
    """Raises ``BadInput`` where an address is none of a state: before anything else is asked of it."""
    from pilotlight.connections import STATES, no_state

    if address.partition(":")[0] not in STATES:
        raise no_state(address)


def with_policy(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with ``--policy``: the file stands for the deployment's while it runs."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        given = options.pop(POLICY, "")
        if given and "://" not in given:
            read(given)  # A file that is not there is told before what else may be wrong.
        with lend({"PILOTLIGHT_POLICY": given} if given else {}):
            return command(*args, **options)

    return _with_option(run, POLICY, PolicyFile)


def _with_option(run: Callable[..., Any], name: str, kind: Any) -> Callable[..., Any]:
    """The function, told to take one option more than what it wraps."""
    taken = signature(run)
    option = Parameter(name, Parameter.KEYWORD_ONLY, default="", annotation=kind)
    run.__signature__ = taken.replace(parameters=[*taken.parameters.values(), option])  # type: ignore[attr-defined]
    return run


@contextmanager
def _telling(said: str) -> Iterator[None]:
    """Have a line of the state told with the answer; an error is told alone."""
    _SHOWN["line"] = said
    try:
        yield
    except typer.Exit:
        tell_state()
        raise
    tell_state()


def tell_state() -> None:
    """Say where the state is new or empty, once."""
    if said := _SHOWN.pop("line", ""):
        sys.stderr.write(f"{said}\n")


_SHOWN: dict[str, str] = {}
"""The state's address as it was asked for, and the line that is to be told of it."""


def cluster_line(known: bool = False) -> str:
    """The line that an answer begins with. Raises ``BadInput`` where nothing is set up and no serve runs, but for an
    answer that is ``known`` from the state all the same.
    """
    settings = deployed_settings()
    state = _SHOWN.get("state", settings.state)
    if not known and (said := nothing_set_up(settings, state)):
        raise BadInput(said)
    return header(msgspec.structs.replace(settings, state=state), state)


def is_there(settings: Settings) -> bool:
    """Whether the state is no file of this machine, or a file that is there."""
    kind, _, where = settings.state.partition(":")
    return kind != "sqlite" or Path(where).exists()


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
