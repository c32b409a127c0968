"""The console script's own function. It imports next to nothing, so that it can answer while all else is imported."""

import signal
import sys

from pilotlight.tools.cli.front.completion import a_shell_asks, answer
from pilotlight.tools.cli.output import EXIT_FAILED, cannot_write, give_up, open_closed, take_plain_letters
from pilotlight.tools.cli.stop_at_once import EXIT_BAD_INPUT, stop_at_once


def run() -> None:
    """The command line: Ctrl-C and a package that is not installed are one line from the first moment on."""
    signal.signal(signal.SIGINT, stop_at_once)
    _ask_for_help()
    words = [word for word in sys.argv[1:] if word != "--debug"]
    open_closed()
    take_plain_letters()
    try:
        if a_shell_asks():
            _complete()
        else:
            _help(words)
        from pilotlight.tools.cli.main import run as command

        command()
    except ModuleNotFoundError as error:
        from pilotlight.tools.cli.extras import advice

        said = advice(error)
        if not said:
            raise
        sys.stderr.write(f"error: {said}\n")
        sys.exit(EXIT_BAD_INPUT)


def _ask_for_help() -> None:
    """Have ``help`` and ``help COMMAND`` be what --help is."""
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*(word for word in sys.argv[2:] if word not in ("help", "--help", "-h")), "--help"]


def _complete() -> None:
    """Answer a shell that completes a line; one that asks for its script goes on."""
    if (told := answer()) is not None:
        sys.exit(_print(told[0]) or told[1])


def _help(words: list[str]) -> None:
    """Print the help of the command itself: on a terminal, and without a word, only where to start. Others go on."""
    from pilotlight.tools.cli.front.front_help import ASKED, front_help

    if words and set(words) not in ASKED:
        return
    failed = _print(front_help("--all" in words, "Start" if not words and sys.stdout.isatty() else ""))
    sys.exit(failed or (0 if words else EXIT_BAD_INPUT))


def _print(text: str) -> int:
    """Print it all; the exit code."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        give_up()
    except OSError as error:
        give_up()
        if said := cannot_write(error):
            sys.stderr.write(f"error: {said}\n")
        return EXIT_FAILED
    return 0
