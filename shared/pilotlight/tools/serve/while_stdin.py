"""A process that was started for another does not outlive it, however that one went: it ends when stdin does."""

import os
import signal
import threading


def end_with_stdin() -> None:
    """Whoever started this process holds the other end. It ends as by SIGTERM; a fork of it is its own affair."""
    threading.Thread(target=_end, daemon=True).start()


def _end() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
