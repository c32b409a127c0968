"""The console script's own function. It imports next to nothing, so that it can answer while all else is imported."""

import signal
import sys

from pilotlight.tools.cli.front_help import ASKED, front_help
from pilotlight.tools.cli.stop_at_once import EXIT_BAD_INPUT, stop_at_once


def run() -> None:
    """The command line: Ctrl-C and a package that is not installed are one line from the first moment on."""
    signal.signal(signal.SIGINT, stop_at_once)
    words = [word for word in sys.argv[1:] if word != "--debug"]
    if words and set(words) in ASKED:
        sys.stdout.write(front_help("--all" in words))
        sys.exit(0)
    try:
        if not words and not _completes():
            sys.stdout.write(front_help(only="Start" if sys.stdout.isatty() else ""))
            sys.exit(EXIT_BAD_INPUT)
        from pilotlight.tools.cli.main import run as command

        command()
    except ModuleNotFoundError as error:
        from pilotlight.tools.cli.extras import advice

        said = advice(error)
        if not said:
            raise
        sys.stderr.write(f"error: {said}\n")
        sys.exit(EXIT_BAD_INPUT)


def _completes() -> bool:
    """Whether a shell asks for completion, which it does without words."""
    from pilotlight.settings import environment

    return "_PILOTLIGHT_COMPLETE" in environment()
