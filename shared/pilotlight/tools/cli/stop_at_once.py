"""The end of a process on Ctrl-C before anything was begun, and the exit codes that every command shares."""

import os

EXIT_BAD_INPUT = 2
EXIT_STOPPED = 130


def stop_at_once(*_: object) -> None:
    """Ctrl-C before anything was begun: there is nothing to tidy up."""
    os.write(2, b"stopped\n")
    os._exit(EXIT_STOPPED)
