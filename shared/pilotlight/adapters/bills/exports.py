"""The files of a billing export on this machine: a path or pattern as it is, ``s3://`` and ``gs://`` as copies.

Only what is current is read: of AWS Data Exports what the newest manifest of each month names, and a file that is there
twice once. An export that was written again beside itself is kept apart as an older version.
"""

import glob
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from pilotlight.adapters.bills.versions import (
    MANIFEST,
    Listed,
    Partition,
    by_version,
    newest_manifests,
    newest_run,
    partitions,
)
from pilotlight.adapters.object_store import SCHEMES, Objects
from pilotlight.errors import BadInput


class Files(NamedTuple):
    """Files at an address: files by version, the oldest first, and how many lie there that are not current."""

    versions: Sequence[Sequence[Path]]
    dropped: int


@contextmanager
def local_files(uri: str, objects: Objects) -> Iterator[Files]:
    """The files that an address names; ``*`` stands for any text. Copies are gone after.

    Addresses that end in ``anifest.json`` name the files that are listed there. Raises ``BadInput`` where there are
    none, ``Unavailable`` when later may work.
    """
    with tempfile.TemporaryDirectory(prefix="pilotlight-bill-") as folder:
        place = Path(folder)
        there = _listed(uri, objects)
        manifests = [one for one in there if one.uri.endswith(MANIFEST)]
        data = [one for one in there if one not in manifests]
        current = _named_by(manifests, place, objects) if manifests else _current(data, place, objects)
        if not current:
            raise BadInput(f"PILOTLIGHT_BILLS: no file at {uri}; name the export's data files")
        versions = [[_local(one.uri, place, objects) for one in version] for version in by_version(current)]
        yield Files(_once(versions), 0 if manifests else len(data) - len(current))


def _current(files: Sequence[Listed], place: Path, objects: Objects) -> list[Listed]:
    """Data files that are current: of each partition what its manifest names, else its newest run."""
    by_partition, found = partitions(files)
    for partition, held in by_partition.items():
        manifests = [one for of, one in newest_manifests(_listed(partition.manifests, objects)) if of == partition]
        named = [name for one in manifests for name in _data_files(one, partition, place, objects)]
        found += [one for one in held if one.uri in named] or newest_run(held)
    return found


def _named_by(manifests: Sequence[Listed], place: Path, objects: Objects) -> list[Listed]:
    """The files that manifests name, the newest of each partition."""
    return [
        Listed(name, one.modified)
        for partition, one in newest_manifests(manifests)
        for name in _data_files(one, partition, place, objects)
    ]


def _data_files(manifest: Listed, partition: Partition | None, place: Path, objects: Objects) -> Iterable[str]:
    """The data files of a manifest: AWS Data Exports writes it after all of them."""
    file = _local(manifest.uri, place, objects)
    try:
        found = json.loads(file.read_bytes())
    except (ValueError, OSError):
        raise BadInput(f"{file.name}: not JSON") from None
    names = found.get("dataFiles") if isinstance(found, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{file.name}: has no list dataFiles")
    return [partition.file(name) for name in names] if partition else names


def _once(versions: Sequence[Sequence[Path]]) -> list[list[Path]]:
    """The versions without files that are there twice, and without those that only repeat another's files."""
    held = [{_digest(file): file for file in reversed(version)} for version in versions]
    kept: list[dict[bytes, Path]] = []
    for version in held:
        if not any(version.keys() <= other.keys() for other in kept):
            kept = [other for other in kept if not other.keys() <= version.keys()] + [version]
    return [list(version.values()) for version in kept]


def _digest(file: Path) -> bytes:
    with file.open("rb") as content:
        digest = blake2b(digest_size=16)
        while part := content.read(1 << 20):
            digest.update(part)
    return digest.digest()


def _listed(uri: str, objects: Objects) -> list[Listed]:
    if urlsplit(uri).scheme in SCHEMES:
        return [Listed(*one) for one in objects.list_matching(uri)]
    # In a bucket ``*`` crosses folders; here the pattern of manifests must as well.
    names = glob.glob(uri.replace(f"/*{MANIFEST}", f"/**/*{MANIFEST}"), recursive=True)
    return [Listed(name, _written(Path(name))) for name in sorted(names) if Path(name).is_file()]


def _written(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _local(uri: str, folder: Path, objects: Objects) -> Path:
    """The file itself, or a copy under its own name, for what it ends in says how it is packed."""
    if urlsplit(uri).scheme not in SCHEMES:
        if not Path(uri).is_file():
            raise BadInput(f"PILOTLIGHT_BILLS: no file at {uri}, which a manifest names")
        return Path(uri)
    place = Path(tempfile.mkdtemp(dir=folder)) / uri.rpartition("/")[2]
    objects.copy(uri, place)
    return place
