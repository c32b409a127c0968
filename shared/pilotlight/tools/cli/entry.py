"""The console script's own function. It imports next to nothing, so that it can answer while all else is imported."""

import signal
import sys

from pilotlight.tools.cli.front_help import ASKED, completed_names, front_help
from pilotlight.tools.cli.output import EXIT_FAILED, cannot_write, give_up, open_closed
from pilotlight.tools.cli.stop_at_once import EXIT_BAD_INPUT, stop_at_once


def run() -> None:
    """The command line: Ctrl-C and a package that is not installed are one line from the first moment on."""
    signal.signal(signal.SIGINT, stop_at_once)
    words = [word for word in sys.argv[1:] if word != "--debug"]
    open_closed()
    try:
        if set(words) in ASKED:
            sys.exit(_answer(words))
        if not words:
            _answer_without_words()
        from pilotlight.tools.cli.main import run as command

        command()
    except ModuleNotFoundError as error:
        from pilotlight.tools.cli.extras import advice

        said = advice(error)
        if not said:
            raise
        sys.stderr.write(f"error: {said}\n")
        sys.exit(EXIT_BAD_INPUT)


def _answer(words: list[str]) -> int:
    """Print the help of the command itself: on a terminal, and without a word, only where to start. The exit code."""
    try:
        sys.stdout.write(front_help("--all" in words, "Start" if not words and sys.stdout.isatty() else ""))
        sys.stdout.flush()
    except OSError as error:
        give_up()
        if said := cannot_write(error):
            sys.stderr.write(f"error: {said}\n")
        return EXIT_FAILED
    return 0 if words else EXIT_BAD_INPUT


def _answer_without_words() -> None:
    """Answer bash, which completes a command's name, or whoever typed the name alone; other shells' asks go on."""
    from pilotlight.settings import environment

    if (named := completed_names(environment())) is not None:
        sys.stdout.write("".join(f"{name}\n" for name in named))
        sys.exit(0)
    if "_PILOTLIGHT_COMPLETE" not in environment():
        sys.exit(_answer([]))
