"""Files written whole or not at all: each is put in its place when it is complete."""

import os
from contextlib import suppress
from pathlib import Path

from pilotlight.errors import BadInput


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
