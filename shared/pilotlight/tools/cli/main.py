"""The command ``pilotlight``: its commands, and how errors look.

A command's module is imported when that command is named, so that help is quick.
"""

import inspect
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.models import CommandInfo, TyperInfo

from pilotlight.adapters import logs
from pilotlight.errors import BadInput, BadPolicy, PilotlightError, Reject, StoreFault
from pilotlight.tools.cli.command_table import COMMANDS, ELSEWHERE, module_of
from pilotlight.tools.cli.front.front_help import ABOUT
from pilotlight.tools.cli.output import EXIT_FAILED, Reader, cannot_write, give_up
from pilotlight.tools.cli.state_option import BESIDE, JUDGES, beside_serve, with_policy, with_state
from pilotlight.tools.cli.stop_at_once import EXIT_BAD_INPUT, stop_at_once
from pilotlight.tools.cli.terminal import Shown, teach_rich

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

WATCHED = {"demo", "--watch"}
"""Words of commands that only play for who watches."""

HELP = {"--help", "-h"}
"""What Typer answers by Rich."""

OPEN_STATE = {
    *("status", "pools", "gpus", "why", "budget", "alerts", "shadow", "report", "bill", "audit", "state"),
    *("commitments", "targets", "preempt", "serve", "reconcile", "takeover", "pause", "resume", "approve", "reclaim"),
    "drill",
}
"""Those that open the state: they take ``--state``."""

PRIVATE = 0o077
"""Who else may read what is written here: state, outbox, reports and exports have names, figures and decisions."""

STOP_S = 1.5
"""Seconds of the wall's clock that tidying up may take after Ctrl-C or SIGTERM."""
ENDS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """Ctrl-C or SIGTERM. No library takes it for its own, so every file and process is let go on the way out."""


def build(words: list[str]) -> typer.Typer:
    """The command line for ``words``: the module of the command that they name and the names of the others, or all."""
    app = typer.Typer(
        name="pilotlight",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        help=ABOUT,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_options)
    named = module_of(words[0]) if words else ""
    for module, commands in COMMANDS.items():
        if not words or module == named:
            import_module(f"pilotlight.tools.cli.{module}").register(app)
            continue
        for name, line in commands.items():
            app.command(name, help=line)(_elsewhere)
    for path, command in _commands(app):
        if command.callback not in (None, _elsewhere):
            command.help = _in_paragraphs(inspect.getdoc(command.callback) or "")
            command.callback = _with_finite(command.callback)
            if path.split()[0] in OPEN_STATE:
                command.callback = with_state(command.callback, path)
            if path in BESIDE:
                command.callback = beside_serve(command.callback)
            if path in JUDGES:
                command.callback = with_policy(command.callback)
    return app


def _with_finite(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, which refuses NaN and infinity: no bound of an option holds NaN back."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        for name, value in options.items():
            if isinstance(value, float) and not isfinite(value):
                option = f"'--{name.replace('_', '-')}'"
                raise typer.BadParameter(f"{value} is no number: write one, as 2.5", param_hint=option)
        return command(*args, **options)

    return run


def _in_paragraphs(text: str) -> str:
    """A help whose lines end where the terminal does, not where those of the source do. An example has its own line."""
    return re.sub(r"(?<=\S)\n(?=\S)(?!Examples?: )", " ", text)


def _commands(app: typer.Typer) -> Iterator[tuple[str, CommandInfo]]:
    """Every command below the app with the words that name it."""
    for command in app.registered_commands:
        yield _name(command), command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            for command in group.typer_instance.registered_commands:
                yield f"{_name(group)} {_name(command)}", command


def _elsewhere() -> None:
    """Stand for a command whose module is not imported: for completion of names, and for what is no command."""


def _name(info: CommandInfo | TyperInfo) -> str:
    """Name of a command or a group of them in the help."""
    name = info.name or getattr(info.callback, "__name__", "")
    return str(name).replace("_", "-")


def run(made: Callable[[list[str]], typer.Typer] = build, name: str = "pilotlight") -> None:
    """Run a command of the line that ``made`` gives for its words, and end the process."""
    signal.signal(signal.SIGINT, stop_at_once)
    os.umask(PRIVATE)
    sys.stdout, sys.stderr = Shown(sys.stdout), Shown(sys.stderr)
    words = [word for word in sys.argv[1:] if word != "--debug"]
    bare = len(words) == 1 and not words[0].startswith("-")  # A group alone prints its help.
    if bare or not HELP.isdisjoint(words):
        teach_rich()
    debug = len(words) < len(sys.argv[1:])
    if debug:
        logs.begin()
    Reader.watches = not WATCHED.isdisjoint(words)
    stop = Stop(os.getpid())
    try:
        _refuse_empty(words)
        command = made(words)
        for number in ENDS:
            signal.signal(number, stop)
        ended = command(args=words, prog_name=name, standalone_mode=False)
        sys.exit(ended if isinstance(ended, int) else 0)
    except Stopped:
        sys.exit(stop.code)
    except Exception as error:
        sys.exit(stop.code or _report(error, debug))  # What breaks because processes were ended is no news.


def _refuse_empty(words: list[str]) -> None:
    """Raises ``BadInput`` for an empty value, as an unset variable of a shell leaves it: of an option it would say what
    leaving the option out says, and no argument has an empty name.
    """
    for before, word in pairwise(["", *words]):
        if word == "--":
            return
        name = word[:-1] if word.startswith("--") and word.endswith("=") else before if not word else ""
        if name.startswith("-"):
            raise BadInput(f"{name} is empty: write a value after it, or leave the option out")
        if not word:
            raise BadInput("an argument is empty: write a value in its place")


class Stop:
    """Answers Ctrl-C and SIGTERM. ``code`` is then the exit code, and 0 before."""

    def __init__(self, began: int) -> None:
        self._began = began
        self.code = 0

    def __call__(self, number: int, _: object) -> None:
        """End what this process began, then itself: in order, or else after a moment. A fork of it says nothing."""
        for each in ENDS:
            signal.signal(each, signal.SIG_IGN)
        self.code = 128 + number
        forked = os.getpid() != self._began
        if not forked:
            os.write(2, b"stopped\n")
        for child in _children():
            child.terminate()
        if forked:
            os._exit(self.code)
        sys.unraisablehook = lambda _: None  # Raised where nothing can be, as while a process forks: the timer ends it.
        threading.excepthook = lambda _: None  # A pool's own thread, whose processes are gone.
        last = threading.Timer(STOP_S, self._last)
        last.daemon = True
        last.start()
        raise Stopped

    def _last(self) -> None:
        for child in _children():
            child.kill()
        os._exit(self.code)


def _children() -> "list[BaseProcess]":
    """The worker processes of this one."""
    if "multiprocessing" not in sys.modules:
        return []
    import multiprocessing

    return [*multiprocessing.active_children()]


def _advice(error: ModuleNotFoundError) -> str:
    from pilotlight.tools.cli.extras import advice

    return advice(error)


def _report(error: Exception, debug: bool) -> int:
    """Say on stderr what went wrong, one line a problem; the exit code."""
    if debug:
        traceback.print_exception(error)
    if hasattr(error, "format_message"):
        return _usage(error)
    if isinstance(error, ModuleNotFoundError) and (said := _advice(error)):
        sys.stderr.write(f"error: {said}\n")
        return EXIT_BAD_INPUT
    if said := cannot_write(error):
        give_up()
        sys.stderr.write(f"error: {said}\n")
    elif isinstance(error, BadPolicy):
        sys.stderr.write("".join(f"error: {' '.join(problem.split())}\n" for problem in error.problems))
    elif isinstance(error, PilotlightError):
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
    else:
        sys.stderr.write(f"error: unexpected {type(error).__name__}: {error}; run again with --debug for the details\n")
    return EXIT_BAD_INPUT if isinstance(error, Reject | StoreFault) else EXIT_FAILED


def _usage(error: Any) -> int:
    """Words that the command line does not know: in one line as all errors, or the help where there were none."""
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(error.format_message())  # Nothing where it has been printed in panels.
        return EXIT_BAD_INPUT
    path = error.ctx.command_path if error.ctx else _typed()
    said = " ".join(error.format_message().split())
    if path == "pilotlight" and (asked := _NO_COMMAND.match(said)):
        said = f"{asked[0]}{_instead(asked['word'])}"
    if said.startswith(NO_CLUSTER):
        said = f"{said.rstrip('.')}: PILOTLIGHT_API=kubeconfig:PATH#CONTEXT names the cluster"
    see = "" if path == "pilotlight" and said.endswith(tuple(ELSEWHERE.values())) else f"; see {path} --help"
    sys.stderr.write(f"error: {said.rstrip('.')}{see}\n")
    return EXIT_BAD_INPUT


def _typed() -> str:
    """The command that was typed, for an error that does not name its own: an option without its value."""
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    return f"pilotlight {first}" if any(first in commands for commands in COMMANDS.values()) else "pilotlight"


NEAR = 0.7
"""A name that is so much alike may be meant: 2 x the letters in common / all letters of both."""

NO_CLUSTER = ("No such option: --context", "No such option: --kubeconfig")
"""Of a command that asks the cluster of the settings."""

_NO_COMMAND = re.compile(r"No such command '(?P<word>[^']*)'")


def _instead(word: str) -> str:
    """Words to type instead of one that is no command: the nearest two of ours, or one that people try."""
    names = [name for commands in COMMANDS.values() for name in commands]
    close = get_close_matches(word, [*ELSEWHERE, *names], n=2, cutoff=NEAR)
    if close and close[0] in ELSEWHERE:
        return f": {ELSEWHERE[close[0]]}"
    named = " or ".join(f"'{name}'" for name in close if name not in ELSEWHERE)
    return f". Did you mean {named}?" if named else ""


def _say_version(asked: bool) -> None:
    """The version of what is installed, on a line; nothing else is done."""
    if asked:
        from importlib.metadata import version

        typer.echo(f"pilotlight {version('pilotlight')}")
        raise typer.Exit


def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the log, and the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """``--debug`` is taken off before, wherever it stands; it is here for the help."""
