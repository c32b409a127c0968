"""Which of an export's files are current, by where they lie and what they are called.

AWS Data Exports writes ``<export>/data/<partition>/`` and, where each run is kept, a folder ``<time>-<execution id>``
below that; the manifest of a run lies at the same place under ``metadata/`` and names its files. Other exports write
the whole again beside the old one, under another name or date. Files whose names differ only in a number at their end
are parts of one export.
https://docs.aws.amazon.com/cur/latest/userguide/dataexports-export-delivery.html
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

MANIFEST = "anifest.json"
_DATA = re.compile(r"(?P<root>.*/)?data/(?P<partition>[^/=]+=[^/]+)/(?:(?P<run>.+)/)?[^/]+")
_META = re.compile(r"(?P<root>.*/)?metadata/(?P<partition>[^/=]+=[^/]+)/(?:(?P<run>.+)/)?[^/]+")
_DATE = re.compile(r"(20\d\d)[-_]?(\d\d)[-_]?(\d\d)(?:T?[-_]?(\d\d)[-_:]?(\d\d)[-_:]?(\d\d))?")
_PART = re.compile(r"[-_. (]*\d+\)?$")


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


def newest_manifests(manifests: Iterable[Listed]) -> list[tuple[Partition | None, Listed]]:
    """Of several manifests the newest of each partition; one that is in no partition stands for itself."""
    newest: dict[Partition, Listed] = {}
    alone: list[Listed] = []
    for one in manifests:
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


def by_version(files: Sequence[Listed]) -> list[list[Listed]]:
    """Files by what was written at once, the oldest first: by dates in their names, else by when they were written."""
    groups = _groups(files)
    stamps = {name: _stamp(name) for name in groups}
    dated = all(stamps.values())

    def age(name: str) -> tuple[str, datetime, str]:
        return stamps[name] if dated else "", max(file.modified for file in groups[name]), name

    return [groups[name] for name in sorted(groups, key=age)]


def _groups(files: Sequence[Listed]) -> dict[str, list[Listed]]:
    groups: dict[str, list[Listed]] = defaultdict(list)
    for file in files:
        partition = _DATA.fullmatch(file.uri)
        # What is current of an AWS export is one version, whatever month it is of.
        groups[f"{partition['root'] or ''}data" if partition else _without_part(file.uri)].append(file)
    return groups


def _without_part(uri: str) -> str:
    """The address without the number of a part: a date is none."""
    folder, slash, name = uri.rpartition("/")
    stem, dot, ends = name.partition(".")
    dates = [found.end() for found in _DATE.finditer(stem)]
    kept = dates[-1] if dates else 0
    cut = _PART.sub("#", stem[kept:])
    return f"{folder}{slash}{stem[:kept]}{cut}{dot}{ends}"


def _stamp(name: str) -> str:
    """The last date in a name, with its time where it has one, as digits."""
    found = list(_DATE.finditer(name))
    return "".join(digits or "00" for digits in found[-1].groups()) if found else ""
