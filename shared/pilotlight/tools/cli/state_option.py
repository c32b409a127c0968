"""``--state`` of commands that open the state, ``--policy`` of those that go by one, and a line on a new state.

A question writes nothing: of a state that is not there it asks an empty one in memory. What an answer or a brake is
of stands in its first line; where that is nothing, one line says so.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.settings import OLD_HOME, Settings, deployed_settings, read
from pilotlight.tools.cli.served import header, lend, nothing_set_up, serve_beside, settings_of

if TYPE_CHECKING:
    from pilotlight.ports.state import State

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
    *("report", "bill", "conformance"),
}
"""Commands that go by a policy and have no such option of their own."""

BESIDE = ("plan", "doctor")
"""Commands that open no state, and ask the cluster of a serve all the same."""
ELSEWHERE = ("context", "kubeconfig", "pods", "nodes", "objects", "sample")
"""Options that name another cluster."""

BEGINS = ("pause", "serve", "reconcile", "takeover", "drill")
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
            _is_one(settings.state)
            lent = {} if name == "serve" else settings_of(serve_beside(settings), settings)
            # A question makes no folder; who watches sees what is made meanwhile.
            makes = name in (*BEGINS, *CARRIES) or bool(options.get("watch"))
            there = is_there(settings)
            said = nothing_yet(settings, makes)
            if not there and not makes:
                lent["PILOTLIGHT_STATE"] = "memory:"
            _asked.state = settings.state
            _asked.named = bool(settings.environ.get("PILOTLIGHT_STATE")) and (there or not given)
            _asked.holds = there and not said and settings.state.startswith("sqlite:")
            _asked.before = "" if there else _of_before(settings)
            with lend(lent), _telling(said):
                if options.get("watch"):
                    tell_state()
                return command(*args, **options)

    return _with_option(run, NAME, Address)


def _is_one(address: str) -> None:
    """Raises ``BadInput`` where an address is none of a state: before anything else is asked of it."""
    from pilotlight.connections import STATES, no_state

    kind, _, where = address.partition(":")
    if kind not in STATES or not (where or kind == "memory"):
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


def beside_serve(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, which asks the cluster of a serve that runs over this state where it is told of no other."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        settings = deployed_settings()
        elsewhere = any(options.get(name) for name in ELSEWHERE)
        with lend({} if elsewhere else settings_of(serve_beside(settings), settings)):
            return command(*args, **options)

    return run


def _with_option(run: Callable[..., Any], name: str, kind: Any) -> Callable[..., Any]:
    """The function, told to take one option more than what it wraps."""
    taken = signature(run)
    option = Parameter(name, Parameter.KEYWORD_ONLY, default="", annotation=kind)
    run.__signature__ = taken.replace(parameters=[*taken.parameters.values(), option])  # type: ignore[attr-defined]
    return run


@contextmanager
def _telling(said: str) -> Iterator[None]:
    """Have a line of the state told with the answer; an error is told alone."""
    _asked.line = said
    try:
        yield
    except typer.Exit:
        tell_state()
        raise
    tell_state()


def tell_state() -> None:
    """Say where the state is new or empty, once."""
    if said := _asked.line:
        sys.stderr.write(f"{said}\n")
    _asked.line = ""


def tell_instead(said: str) -> None:
    """Have this told in place of the line of the state, which the answer is not of."""
    _asked.line = said


class _Asked(msgspec.Struct):
    """The state as it was asked for."""

    state: str = ""  # Its address.
    named: bool = False  # Somebody named it, and it is one that is there or that the environment names.
    holds: bool = False  # It is a file that holds records.
    before: str = ""  # Where one of before is.
    line: str = ""  # The line that is to be told of it.


_asked = _Asked()


def cluster_line(known: bool = False) -> str:
    """The line that an answer begins with. Raises ``BadInput`` where nothing is set up and no serve runs, but for an
    answer that is ``known`` from the state all the same.
    """
    settings = deployed_settings()
    state = _asked.state or settings.state
    if not known and (said := nothing_set_up(settings, state, _held(state))):
        raise BadInput(said + _asked.before)
    return header(msgspec.structs.replace(settings, state=state), state)


def _held(state: str) -> list[str]:
    """The clusters that a state of this machine has records of."""
    if not _asked.holds:
        return []
    from pilotlight.adapters.state.sqlite import SqliteState
    from pilotlight.state_schema.lease_records import FENCE

    return [entry.name for entry in FENCE.scan(SqliteState(Path(state.partition(":")[2])))] or [""]


def line_of_records(state: "State") -> str:
    """The line of an answer from records. Raises ``BadInput`` where nothing is set up and the state has none."""
    return cluster_line(known=bool(state.scan("", limit=1).items))


def line_of_brake() -> str:
    """The line of a brake. Raises ``BadInput`` where nothing is set up: a pause that nobody meets is none. A state that
    is named is somebody's, whose cluster is set up elsewhere.
    """
    return cluster_line(known=_asked.named)


def line_of_store() -> str:
    """The line of an answer about the store itself. Raises ``BadInput`` where nothing is set up and it is not there."""
    settings = deployed_settings()
    return cluster_line(known=settings.state == _asked.state)  # Else it is an empty one in its place.


def is_there(settings: Settings) -> bool:
    """Whether the state is no file of this machine, or a file with something in it: one without is left so."""
    kind, _, where = settings.state.partition(":")
    return kind != "sqlite" or (Path(where).exists() and Path(where).stat().st_size > 0)


def _of_before(settings: Settings) -> str:
    """Where a state of before is, for who named none."""
    old = OLD_HOME / "state.db"
    named = settings.environ.get("PILOTLIGHT_STATE") or settings.environ.get("PILOTLIGHT_HOME")
    return f"; one of before is in {old}: --state sqlite:{old}" if old.exists() and not named else ""


def nothing_yet(settings: Settings, makes: bool) -> str:
    """One line where the state is a file that is not there, which the command ``makes`` or not, or holds nothing."""
    kind, _, where = settings.state.partition(":")
    if kind != "sqlite" or not where:
        return ""
    if not Path(where).exists():
        return f"state: {settings.state} is {'new' if makes else 'not there'}{_of_before(settings)}"
    from pilotlight.adapters.state.sqlite import SqliteState, refuse_strange

    refuse_strange(Path(where))
    if is_there(settings) and SqliteState(Path(where)).scan("", limit=1).items:
        return ""
    return f"state: {settings.state} {'was' if makes else 'is'} empty"
