"""The files of a billing export on this machine: a path or pattern as it is, ``s3://`` and ``gs://`` as copies.

Only what is current is read: of AWS Data Exports what the newest manifest of each month names, and a file that is there
twice once. An export that was written again beside itself is kept apart as an older version.

AWS Data Exports writes ``<export>/data/<partition>/`` and, where each run is kept, a folder ``<time>-<execution id>``
below that; the manifest of a run lies at the same place under ``metadata/`` and names its files. Azure writes
``<export>/<first day>-<last day>/``, with a folder a run or a file a run below that. Other exports write
the whole again beside the old one, under another name or date. Files whose names differ only in a part's number are
parts of one export, unless their lines say that they are the same again.
https://docs.aws.amazon.com/cur/latest/userguide/dataexports-export-delivery.html
"""

import codecs
import glob
import gzip
import io
import json
import re
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pilotlight.errors import BadInput, Unavailable
from pilotlight.facts.money.bill_files import BillListing

if TYPE_CHECKING:
    from pilotlight.adapters.object_store import Objects

Store = Callable[[], "Objects"]
"""The client of buckets: asked for where an object is read, for its import is much of a start."""
MANIFEST = "anifest.json"
MOST_GROUPS = 64
"""A version of so many files is read file by file."""
_DATA = re.compile(r"(?P<root>.*/)?data/(?P<partition>[^/=]+=[^/]+)/(?:(?P<run>.+)/)?[^/]+")
_META = re.compile(r"(?P<root>.*/)?metadata/(?P<partition>[^/=]+=[^/]+)/(?:(?P<run>.+)/)?[^/]+")
_PERIOD = re.compile(r"(?P<root>.*/)?(?P<partition>20\d{6}-20\d{6})/(?:(?P<run>.+)/)?[^/]+")
_DATE = re.compile(r"(20\d\d)[-_]?(\d\d)[-_]?(\d\d)(?:T?[-_]?(\d\d)[-_:]?(\d\d)[-_:]?(\d\d))?")
_PART = re.compile(r"(?i)part[-_. ]?\d+|\d+[-_. ]?of[-_. ]?\d+|(?<=-)c\d+$|[-_. (]*\d+\)?$")
_ENDS = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]*)*$")


class Listed(NamedTuple):
    """A file or object by its address, and when it was last written."""

    uri: str
    modified: datetime


class Partition(NamedTuple):
    """One month of an AWS export: the address before ``data/``, and the folder's name."""

    root: str
    name: str

    @property
    def manifests(self) -> str:
        """The pattern of its manifests."""
        return f"{self.root}metadata/{self.name}/*{MANIFEST}"

    def file(self, name: str) -> str:
        """A file that a manifest names, where this partition lies: it may be a copy of the bucket."""
        _, found, rest = name.rpartition(f"data/{self.name}/")
        return f"{self.root}data/{self.name}/{rest}" if found else name


def partitions(files: Iterable[Listed]) -> tuple[dict[Partition, list[Listed]], list[Listed]]:
    """Files by the partition of an AWS export that they lie in, and those that lie in none."""
    of: dict[Partition, list[Listed]] = defaultdict(list)
    others: list[Listed] = []
    for file in files:
        found = _DATA.fullmatch(file.uri)
        if found:
            of[Partition(found["root"] or "", found["partition"])].append(file)
        else:
            others.append(file)
    return dict(of), others


def newest_run(files: Sequence[Listed]) -> list[Listed]:
    """Of a partition without a manifest the files of its newest run: its folder begins with the time."""
    runs: dict[str, list[Listed]] = defaultdict(list)
    for file in files:
        found = _DATA.fullmatch(file.uri)
        runs[(found and found["run"]) or ""].append(file)
    return runs[max(runs)]


def newest_of_periods(files: Iterable[Listed]) -> list[Listed]:
    """Files without those of an earlier run of Azure's over the same period: it exports the period whole each time."""
    runs: dict[tuple[str, ...], dict[str, list[Listed]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        found = _PERIOD.fullmatch(file.uri)
        period = ("period", found["root"] or "", found["partition"]) if found else ("file", file.uri)
        runs[period][(found and found["run"]) or _without_part(file.uri)].append(file)
    return [file for of in runs.values() for file in max(of.values(), key=_written_at)]


def _written_at(files: Sequence[Listed]) -> tuple[str, datetime]:
    found = _PERIOD.fullmatch(files[0].uri)
    return _stamp((found and found["run"]) or ""), max(file.modified for file in files)


def newest_manifests(manifests: Iterable[Listed]) -> list[tuple[Partition | None, Listed]]:
    """Of several manifests the newest of each partition; one that is in no partition stands for itself."""
    newest: dict[Partition, Listed] = {}
    alone: list[Listed] = []
    for one in newest_of_periods(manifests):
        found = _META.fullmatch(one.uri)
        if found is None:
            alone.append(one)
            continue
        key = Partition(found["root"] or "", found["partition"])
        newest[key] = max(newest.get(key, one), one, key=_run_and_time)
    return [*newest.items(), *((None, one) for one in alone)]


def _run_and_time(manifest: Listed) -> tuple[str, datetime]:
    found = _META.fullmatch(manifest.uri)
    return (found and found["run"]) or "", manifest.modified


def by_version(files: Sequence[Listed]) -> list[tuple[bool, list[Listed]]]:
    """Files by what was written at once, the oldest first: by dates in their names, else by when they were written.

    True beside those that are one by their names alone.
    """
    groups = _groups(files)
    stamps = {name: _stamp(name) for name in groups}
    dated = all(stamps.values())

    def age(name: str) -> tuple[str, datetime, str]:
        return stamps[name] if dated else "", max(file.modified for file in groups[name]), name

    return [
        ("#" in name and len(groups[name]) > 1, sorted(groups[name], key=_time_and_number))
        for name in sorted(groups, key=age)
    ]


def _time_and_number(file: Listed) -> tuple[datetime, str]:
    return file.modified, re.sub(r"\d+", lambda number: number[0].zfill(20), file.uri)


def _groups(files: Sequence[Listed]) -> dict[str, list[Listed]]:
    """Files by what they are one by: an AWS export, whatever month; a run of Azure's over a period; else their name."""
    groups: dict[str, list[Listed]] = defaultdict(list)
    for file in files:
        partition, period = _DATA.fullmatch(file.uri), _PERIOD.fullmatch(file.uri)
        if partition:
            name = f"{partition['root'] or ''}data"
        elif period and period["run"]:
            name = f"{period['root'] or ''}{period['partition']}"
        else:
            name = _without_part(file.uri)
        groups[name].append(file)
    _join_formats(groups)
    return groups


def _join_formats(groups: dict[str, list[Listed]]) -> None:
    """Make numbered parts of several formats one group; where a number is there in two, it is written again."""
    formats: dict[str, list[str]] = defaultdict(list)
    for name in groups:
        if "#" in name:
            formats[_ENDS.sub("", name)].append(name)
    for first, *others in formats.values():
        parts = [_ENDS.sub("", file.uri) for name in (first, *others) for file in groups[name]]
        if len({*parts}) == len(parts):
            groups[first] += [file for name in others for file in groups.pop(name)]


def _without_part(uri: str) -> str:
    """The address with # for the number of a part: a date is none."""
    folder, slash, name = uri.rpartition("/")
    stem = _ENDS.sub("", name)
    dates = [found.end() for found in _DATE.finditer(stem)]
    kept = dates[-1] if dates else 0
    return f"{folder}{slash}{stem[:kept]}{_PART.sub('#', stem[kept:])}{name[len(stem) :]}"


def _stamp(name: str) -> str:
    """The last date in a name, with its time where it has one, as digits."""
    found = list(_DATE.finditer(name))
    return "".join(digits or "00" for digits in found[-1].groups()) if found else ""


def list_files(uri: str, store: Store) -> BillListing:
    """Files that an address names, those that are current, by version; ``*`` stands for any text. None is read.

    Addresses that end in ``anifest.json`` name the files that are listed there. Raises ``BadInput`` where there are
    none, ``Unavailable`` when later may work.
    """
    there = _listed(uri, store)
    beside = [one for partition in partitions(there)[0] for one in _listed(partition.manifests, store)]
    manifests = [one for one in there if one.uri.endswith(MANIFEST)]
    data = [one for one in there if one not in manifests]
    with tempfile.TemporaryDirectory(prefix="pilotlight-bill-") as folder:
        place = Path(folder)
        current = _named_by(manifests, place, store) if manifests else _current(data, place, store)
    if not current:
        raise BadInput(f"PILOTLIGHT_BILLS: no file at {uri}; name the export's data files")
    names = sorted(f"{one.uri} {one.modified.isoformat()}" for one in [*there, *beside])
    versions = by_version(current)
    return BillListing(
        word=blake2b("\n".join(names).encode(), digest_size=16).hexdigest(),
        versions=[_grouped([one.uri for one in version]) for _, version in versions],
        numbered=frozenset(number for number, (by_name, _) in enumerate(versions) if by_name and not manifests),
        replaced=0 if manifests else len(data) - len(current),
    )


def _grouped(names: Sequence[str]) -> list[tuple[str, ...]]:
    """What is read at once: each file by itself, where they are not very many."""
    each = -(-len(names) // MOST_GROUPS)
    return [tuple(names[at : at + each]) for at in range(0, len(names), each)]


@contextmanager
def local_files(names: Sequence[str], store: Store) -> Iterator[list[Path]]:
    """Files of a listing on this machine, in their order. Copies are gone after."""
    with tempfile.TemporaryDirectory(prefix="pilotlight-bill-") as folder:
        yield [_readable(_local(name, Path(folder), store), Path(folder)) for name in names]


def _current(files: Sequence[Listed], place: Path, store: Store) -> list[Listed]:
    """Data files that are current: of each partition what its manifest names, else its newest run."""
    by_partition, others = partitions(files)
    found = newest_of_periods(others)
    for partition, held in by_partition.items():
        manifests = [one for of, one in newest_manifests(_listed(partition.manifests, store)) if of == partition]
        named = [name for one in manifests for name in _data_files(one, partition, place, store)]
        own = [one for one in held if one.uri in named]
        if own and (missing := sorted({*named} - {one.uri for one in own})):
            raise Unavailable(f"{missing[0]} is not there yet, or PILOTLIGHT_BILLS leaves it out: a manifest names it")
        found += own or newest_run(held)
    return found


def _named_by(manifests: Sequence[Listed], place: Path, store: Store) -> list[Listed]:
    """The files that manifests name, the newest of each partition."""
    return [
        Listed(name, one.modified)
        for partition, one in newest_manifests(manifests)
        for name in _data_files(one, partition, place, store)
    ]


def _data_files(manifest: Listed, partition: Partition | None, place: Path, store: Store) -> Iterable[str]:
    """The data files of a manifest: AWS Data Exports writes it after all of them."""
    file = _local(manifest.uri, place, store)
    try:
        found = json.loads(file.read_bytes())
    except (ValueError, OSError):
        raise BadInput(f"{file.name}: not JSON") from None
    names = found.get("dataFiles") if isinstance(found, dict) else None
    blobs = found.get("blobs") if isinstance(found, dict) else None
    if isinstance(blobs, list) and all(
        isinstance(blob, dict) and isinstance(blob.get("blobName"), str) for blob in blobs
    ):
        # Azure's lies beside the files that it names.
        return [f"{manifest.uri.rpartition('/')[0]}/{blob['blobName'].rpartition('/')[2]}" for blob in blobs]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{file.name}: has no list dataFiles or blobs")
    return [partition.file(name) for name in names] if partition else names


def digest_of(file: Path) -> str:
    """A word for what is in a file."""
    with file.open("rb") as content:
        digest = blake2b(digest_size=16)
        while part := content.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _in_bucket(uri: str) -> bool:
    scheme = urlsplit(uri).scheme
    if not scheme:
        return False
    from pilotlight.adapters.object_store import SCHEMES

    return scheme in SCHEMES


def _listed(uri: str, store: Store) -> list[Listed]:
    if _in_bucket(uri):
        return [Listed(*one) for one in store().list_matching(uri)]
    # In a bucket ``*`` crosses folders; here the pattern of manifests must as well.
    names = glob.glob(uri.replace(f"/*{MANIFEST}", f"/**/*{MANIFEST}"), recursive=True)
    return [Listed(name, _written(Path(name))) for name in sorted(names) if Path(name).is_file()]


def _written(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _readable(file: Path, folder: Path) -> Path:
    """The file itself, or one as DuckDB reads it: with text in UTF-8, and the end of its name, which says how it is
    packed, in small letters."""
    name = _ENDS.sub(lambda ends: ends[0].lower(), file.name)
    opened = gzip.open if name.endswith(".gz") else open
    try:
        with opened(file, "rb") as packed:
            if encoding := _wide(packed.read(4)):
                place = Path(tempfile.mkdtemp(dir=folder)) / name
                packed.seek(0)
                with io.TextIOWrapper(packed, encoding) as text, opened(place, "wb") as out:
                    while part := text.read(1 << 20):
                        out.write(part.encode())
                return place
    except (EOFError, OSError, zlib.error, UnicodeError):
        return file  # What is cut off is told where it is read.
    if name == file.name:
        return file
    place = Path(tempfile.mkdtemp(dir=folder)) / name
    place.symlink_to(file.resolve())
    return place


def _wide(head: bytes) -> str:
    """The encoding of text of two bytes a letter, by its mark or the zeros of its first letters; else nothing."""
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    zeros = [n for n, byte in enumerate(head) if not byte]
    return "utf-16-le" if zeros == [1, 3] else "utf-16-be" if zeros == [0, 2] else ""


def _local(uri: str, folder: Path, store: Store) -> Path:
    """The file itself, or a copy under its own name, for what it ends in says how it is packed."""
    if not _in_bucket(uri):
        if not Path(uri).is_file():
            raise BadInput(f"PILOTLIGHT_BILLS: no file at {uri}, which a manifest names")
        return Path(uri)
    place = Path(tempfile.mkdtemp(dir=folder)) / uri.rpartition("/")[2]
    store().copy(uri, place)
    return place
