"""The streams that a command prints to: an output that is closed or full ends it in one line.

A reader that has gone, as ``head`` has after its lines, is no error: nothing more is printed, and the command does the
rest of its work and ends with its own exit code. One that only plays for who watches ends at once.
"""

import codecs
import errno
import os
import sys

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
EXIT_FAILED = 1


def open_closed() -> None:
    """Give a stream that the caller closed, as `>&-` does, a file again; Python has None there.

    A closed stdin is empty. What is printed to a closed stdout cannot be written: a file for reading alone says so. It
    also holds the place, so that no file of the command's own is opened there. A closed stderr can be told nothing, and
    swallows what is said.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  It lives as long as the process.
    for name, mode in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, mode), "w", encoding="utf-8"))  # noqa: SIM115  It lives as long as the process.


def take_plain_letters() -> None:
    """Have a stream of plain letters, as one where LANG is C, show any other by its escape, as JSON reads it. Rich ends
    what it cuts with an ellipsis: that is a dot there.
    """
    codecs.register_error("pilotlight-plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if not (stream.encoding or "utf").lower().startswith("utf") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="pilotlight-plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign = error.object[error.start]
    halves = sign.encode("utf-16-be", "surrogatepass")
    escape = "".join(f"\\u{halves[n : n + 2].hex()}" for n in range(0, len(halves), 2))
    return "." if sign == "\N{HORIZONTAL ELLIPSIS}" else escape, error.start + 1


def cannot_write(error: BaseException) -> str:
    """One line where nothing more can be printed, as on a full disk; else nothing. A file of its own has a name."""
    if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
        return f"the output cannot be written: {error.strerror}"
    return ""


def give_up(number: int = 1) -> None:
    """Print to nowhere from here on, so that what is still buffered raises nothing as the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


class Reader:
    """Who reads standard output. ``watches``: the command only plays for them."""

    watches = False


def go_on_unread(number: int = 1) -> None:
    """Print to nowhere, as the reader of the stream of that number has gone."""
    give_up(number)
    if Reader.watches and number == 1:
        raise SystemExit(0)
