"""What the console script calls. It imports next to nothing, so that it can answer while all else is imported."""

import os
import signal
import sys

EXIT_BAD_INPUT = 2
EXIT_STOPPED = 130


def run() -> None:
    """The command line: Ctrl-C and a package that is not installed are one line from the first moment on."""
    signal.signal(signal.SIGINT, stop_at_once)
    try:
        from pilotlight.tools.cli.main import run as command

        command()
    except ModuleNotFoundError as error:
        from pilotlight.tools.cli.extras import advice

        said = advice(error)
        if not said:
            raise
        sys.stderr.write(f"error: {said}\n")
        sys.exit(EXIT_BAD_INPUT)


def stop_at_once(*_: object) -> None:
    """Ctrl-C before anything was begun: there is nothing to tidy up."""
    os.write(2, b"stopped\n")
    os._exit(EXIT_STOPPED)
