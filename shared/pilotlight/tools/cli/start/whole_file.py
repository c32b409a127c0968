"""Files written whole or not at all: each is put in its place when it is complete."""

import os
from contextlib import suppress
from pathlib import Path

from pilotlight.errors import BadInput


def write_whole(output: str, text: str) -> None:
    """Write a text to a file. Raises ``BadInput`` where that cannot be, and what stood there stands."""
    path = Path(output)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise BadInput(f"{output}: cannot be written: {error.strerror}") from None
