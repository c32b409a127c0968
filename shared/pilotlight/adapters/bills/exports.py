"""The files of a billing export on this machine: a path or pattern as it is, ``s3://`` and ``gs://`` as copies.

A file that is there twice, as an export that was written again beside itself, is one file.
"""

import glob
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

from pilotlight.adapters.objects import SCHEMES, Objects
from pilotlight.errors import BadInput

MOST_FILES = 1000


@contextmanager
def local_files(uri: str, objects: Objects) -> Iterator[list[Path]]:
    """The files that an address names; ``*`` stands for any text. Copies are gone after.

    An address that ends in ``anifest.json`` names the files that are listed there. Raises ``BadInput`` where there are
    none, ``Unavailable`` when later may work.
    """
    with tempfile.TemporaryDirectory(prefix="pilotlight-bill-") as folder:
        files = list(_fetched(uri, Path(folder), objects))
        if len(files) == 1 and files[0].name.endswith("anifest.json"):
            files = [file for name in _listed(files[0]) for file in _fetched(name, Path(folder), objects)]
        if not files:
            raise BadInput(f"PILOTLIGHT_BILLS: no file at {uri}; name the export's data files")
        yield _once(files)


def _listed(manifest: Path) -> list[str]:
    """The data files of a manifest: AWS Data Exports writes it after all of them."""
    try:
        found = json.loads(manifest.read_bytes())
    except (ValueError, OSError):
        raise BadInput(f"{manifest.name}: not JSON") from None
    names = found.get("dataFiles") if isinstance(found, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{manifest.name}: has no list dataFiles")
    return names[:MOST_FILES]


def _once(files: list[Path]) -> list[Path]:
    seen: dict[bytes, Path] = {}
    for file in files:
        with file.open("rb") as content:
            digest = blake2b(digest_size=16)
            while part := content.read(1 << 20):
                digest.update(part)
        seen.setdefault(digest.digest(), file)
    return list(seen.values())


def _fetched(uri: str, folder: Path, objects: Objects) -> Iterator[Path]:
    if urlsplit(uri).scheme not in SCHEMES:
        yield from (Path(name) for name in sorted(glob.glob(uri, recursive=True)) if Path(name).is_file())
        return
    for name in objects.named(uri, MOST_FILES):
        place = _place(folder, name)
        objects.copy(name, place)
        yield place


def _place(folder: Path, key: str) -> Path:
    """Where a copy goes: its own name, for what it ends in says how it is packed."""
    return Path(tempfile.mkdtemp(dir=folder)) / key.rpartition("/")[2]
