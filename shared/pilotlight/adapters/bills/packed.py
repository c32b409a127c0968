"""Text that gzip packed: unpacked once, where there is room for it. Whether it is whole is seen by the way."""

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path

MOST_UNPACKED = 128 * 2**20
"""Bytes of text that lie unpacked at a time, where so many are half of what is free: a function's disk may be its
memory. Further files are unpacked by DuckDB, at each of its readings."""
PIECE = 2**20


class CutOff(Exception):
    """A packed file that ends before its end: DuckDB reads what there is of it, and says nothing."""


@contextmanager
def unpack_texts(files: Sequence[Path]) -> Iterator[Mapping[str, str]]:
    """Places of texts by the packed files that they are of, those that have room. They are gone after.

    Raises ``CutOff`` for a file that is not whole, whether it has room or not.
    """
    texts = dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="pilotlight-bill-") as folder:
        room = min(MOST_UNPACKED, shutil.disk_usage(folder).free // 2)
        for number, file in enumerate(file for file in files if file.suffix == ".gz"):
            place = Path(folder) / f"{number}.csv"
            if size := _unpack(file, place, room):
                texts[str(file)] = str(place)
                room -= size
        yield texts


def check_whole(files: Sequence[Path]) -> None:
    """Raises ``CutOff`` for the first of some files that is not whole."""
    for file in files:
        if file.suffix == ".gz":
            for _ in _parts(file):
                pass


def _unpack(file: Path, place: Path, room: int) -> int:
    """Bytes of the text that is laid at a place; 0 where it has no room."""
    size, fits = 0, True
    with place.open("wb", buffering=0) as out:
        for part in _parts(file):
            size += len(part)
            fits = fits and size <= room and _wrote(out, part)
            if not fits:
                out.truncate(0)
    if fits:
        return size
    place.unlink()
    return 0


def _wrote(out: RawIOBase, part: bytes) -> bool:
    with suppress(OSError):  # The disk is full.
        return out.write(part) == len(part)
    return False


def _parts(file: Path) -> Iterator[bytes]:
    try:
        with gzip.open(file) as content:
            while part := content.read(PIECE):
                yield part
    except (EOFError, OSError, zlib.error):
        raise CutOff(f"{file.name} is cut off; write it again") from None
