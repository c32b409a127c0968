"""Files that a command writes: refused before its work where they cannot be; then written whole, or not at all."""

import os
from contextlib import suppress
from errno import EACCES, EISDIR, ENOENT, ENOTDIR
from pathlib import Path

from pilotlight.errors import BadInput


def see_writable(*outputs: str | Path | None, folders: bool = False) -> None:
    """See that files can be written, before the work whose results they are to hold; None is no file. ``folders`` that
    are not there are made by who writes. Raises ``BadInput``; nothing is made here.
    """
    for output in outputs:
        if output is None or str(output) in ("", "-"):
            continue
        path = Path(output)
        there = next(place for place in (path, *path.absolute().parents) if _exists(place))
        if path.is_dir():
            why = EISDIR
        elif there != path and not there.is_dir():
            why = ENOTDIR
        elif not folders and there not in (path, path.absolute().parent):
            why = ENOENT
        elif not os.access(there, os.W_OK):
            why = EACCES
        else:
            continue
        raise BadInput(f"{output}: {os.strerror(why)}; name a file that can be written")


def _exists(path: Path) -> bool:
    with suppress(OSError):
        return path.exists()
    return False


def write_whole(output: str, text: str) -> None:
    """Write a text to a file. Raises ``BadInput`` where that cannot be, and what stood there stands.

    A device or a pipe is written to and stays what it is.
    """
    path = Path(output)
    special = path.exists() and not (path.is_file() or path.is_dir())
    part = path if special else path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        if not special:
            part.replace(path)
    except OSError as error:
        with suppress(OSError):
            if not special:
                part.unlink()
        raise BadInput(f"{output}: {error.strerror}; name a file that can be written") from None
