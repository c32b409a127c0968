"""Which of a bill's files count: of an export that is written again beside itself, the newer.

A folder, a manifest or a date says that files are versions of one export. Of a day that a newer version tells again,
the older is left out: half of its lines or more are in the newer one too. A file of corrections alone adds.

A number at the end of a name says little: a part, or the whole again. A part has lines of its own. One resource's hour
may lie in two of them, its processors in one and its memory in the other, so a line is told again where its hash has as
many lines there, and the same SKUs or dollars. Where nearly all hashes are the same and both differ, both are told.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Literal, NamedTuple

from pilotlight.facts.money.bill_files import BillFile, BillListing, DayKeys, KeyTold
from pilotlight.facts.workload import Finding
from pilotlight.units import cents, count_of

ZERO = Decimal(0)
NEARLY = Decimal("0.9")
"""Parts by chance have not so many hashes alike in the number of their lines."""
FEW = Decimal("0.1")
"""A part that tells fewer of another's lines again is not told of."""

DayOut = tuple[str, date | None]
"""A day that does not count of a file, by its name."""
Fate = Literal["newer", "few", "apart"]

_WORDS: dict[Fate, str] = {
    "newer": "the newer counts",
    "few": "both count, for they share few lines",
    "apart": "both count, for their SKUs and dollars differ: take away the file that is not current",
}


class _Apart(NamedTuple):
    """A day of which two versions have another sum."""

    day: str
    older: Decimal
    newer: Decimal


_Told = dict[Fate, list[_Apart]]


def current_files(
    listing: BillListing, files: Sequence[BillFile]
) -> tuple[list[list[BillFile]], set[DayOut], tuple[Finding, ...]]:
    """A bill's files by version, the days of files that do not count, and findings on both.

    A version that only repeats another's files is left out.
    """
    versions = _once(listing, {file.name: file for file in files})
    numbered = {group[0] for number in listing.numbered for group in listing.versions[number]}
    gone: set[DayOut] = set()
    told: _Told = defaultdict(list)
    for version in versions:
        if version and version[0].name in numbered:
            gone |= _told_by_parts(version, told)
    gone |= _superseded(versions, gone, told)
    return versions, gone, tuple(_told_apart(told[fate], fate) for fate in _WORDS if fate in told)


def _once(listing: BillListing, files: Mapping[str, BillFile]) -> list[list[BillFile]]:
    """The versions without those that only repeat another's files."""
    kept: list[tuple[frozenset[str], list[BillFile]]] = []
    for groups in listing.versions:
        version = [files[group[0]] for group in groups if group[0] in files]
        held = frozenset(digest for file in version for digest in file.digests)
        if not any(held <= other for other, _ in kept):
            kept = [one for one in kept if not one[0] <= held] + [(held, version)]
    return [version for _, version in kept]


def _superseded(versions: Sequence[Sequence[BillFile]], out: set[DayOut], told: _Told) -> set[DayOut]:
    """Days of versions that a newer one tells again, with ``told`` of those that two of them tell apart.

    Those in ``out`` are left out already.
    """
    days = [_by_day(version, out) for version in versions]
    gone: set[DayOut] = set()
    for number, own in enumerate(days):
        for day in sorted(own):
            newer = {later: days[later][day] for later in range(number + 1, len(days)) if day in days[later]}
            found = _told_again(own[day], newer)
            if found is None:
                continue
            lines_alike, last = found
            older_usd, newer_usd = _usd_of(own[day]), _usd_of(newer[last])
            # By the hour and by the day few lines are the same, and all dollars.
            whole = lines_alike or older_usd == newer_usd
            if whole:
                gone |= {(file.name, date.fromisoformat(day)) for file in versions[number]}
            if older_usd != newer_usd:
                told["newer" if whole else "few"].append(_Apart(day, older_usd, newer_usd))
    return gone


def _by_day(version: Sequence[BillFile], out: set[DayOut]) -> dict[str, list[DayKeys]]:
    found: dict[str, list[DayKeys]] = defaultdict(list)
    for file in version:
        for day, keys in file.keys.items():
            if (file.name, date.fromisoformat(day)) not in out:
                found[day].append(keys)
    return found


def _told_again(own: Sequence[DayKeys], newer: Mapping[int, Sequence[DayKeys]]) -> tuple[bool, int] | None:
    """Whether newer versions of a day have half of its lines or more, and the newest that has any; None where none."""
    cut = min(one.cut for day in (own, *newer.values()) for one in day)
    held = {key: count for key, count in _counts(own).items() if key <= cut}
    last: dict[int, int] = {}
    for version, day in newer.items():
        last |= dict.fromkeys(held.keys() & _counts(day).keys(), version)
    return (2 * sum(held[key] for key in last) >= sum(held.values()), max(last.values())) if last else None


def _counts(found: Sequence[DayKeys]) -> dict[int, int]:
    sums: dict[int, int] = defaultdict(int)
    for one in found:
        for key, told in one.each_line():
            sums[key] += told.lines
    return dict(sums)


def _usd_of(found: Sequence[DayKeys]) -> Decimal:
    return sum((one.usd for one in found), ZERO)


class _Again(NamedTuple):
    """Lines of a part's day that were looked at, and those that later parts have: by hash and number, of them those
    alike in SKUs or dollars too, and those that differ in both. ``by`` are the later parts that have most of them."""

    lines: int
    hashes: int
    alike: int
    differ: int
    by: frozenset[str]


def _told_by_parts(parts: Sequence[BillFile], told: _Told) -> set[DayOut]:
    """Days of parts that later parts tell again, with ``told`` of those whose sums differ."""
    again: dict[str, dict[str, _Again]] = {part.name: {} for part in parts}
    days = _parts_by_day(parts)
    for day, there in days.items():
        for name, one in _of_day(there, day):
            again[name][day] = one
    fates = {name: _judge(of) for name, of in again.items()}
    for day, there in days.items():
        usd = {part.name: part.keys[day].usd for part in there}
        found = {name: (fates[name][day], again[name][day].by) for name in usd if day in fates[name]}
        for fate, sums in _sums_apart(found, usd):
            told[fate].append(_Apart(day, *sums))
    return {
        (name, date.fromisoformat(day)) for name, of in fates.items() for day, fate in of.items() if fate == "newer"
    }


def _parts_by_day(parts: Sequence[BillFile]) -> dict[str, list[BillFile]]:
    days = sorted({day for part in parts for day in part.keys})
    return {day: [part for part in parts if day in part.keys] for day in days}


def _of_day(parts: Sequence[BillFile], day: str) -> Iterator[tuple[str, _Again]]:
    """Each part's day held against that of later parts, the last part first."""
    later: dict[int, list[tuple[str, KeyTold]]] = defaultdict(list)
    cut = parts[-1].keys[day].cut
    for part in reversed(parts):
        cut = min(cut, part.keys[day].cut)
        held = [(key, one) for key, one in part.keys[day].each_line() if key <= cut]
        yield part.name, _again(held, later)
        for key, one in held:
            later[key].append((part.name, one))


def _sums_apart(
    found: Mapping[str, tuple[Fate, frozenset[str]]], usd: Mapping[str, Decimal]
) -> Iterator[tuple[Fate, tuple[Decimal, Decimal]]]:
    """A day's sums of parts that others tell again, and of these others, where they are not the same.

    Of three that tell the same the middle one is held against the last.
    """
    gone = {name for name, (own, _) in found.items() if own == "newer"}
    for fate in _WORDS:
        last = {name: by for name, (own, by) in found.items() if own == fate and not by & gone}
        newer = frozenset[str]().union(*last.values())
        sums = sum((usd[name] for name in last), ZERO), sum((usd[name] for name in newer), ZERO)
        if sums[0] != sums[1]:
            yield fate, sums


def _again(held: Sequence[tuple[int, KeyTold]], later: Mapping[int, Sequence[tuple[str, KeyTold]]]) -> _Again:
    """A part's day held against that of later parts."""
    hashes = alike = differ = 0
    by: dict[str, int] = defaultdict(int)
    for key, one in held:
        same = [(name, two) for name, two in later.get(key, ()) if two.lines == one.lines]
        for name, _ in same:
            by[name] += one.lines
        hashes += one.lines if same else 0
        alike += one.lines if any(_alike(one, two) for _, two in same) else 0
        differ += one.lines if same and all(_differ(one, two) for _, two in same) else 0
    most = frozenset(name for name, lines in by.items() if lines >= FEW * hashes)
    return _Again(sum(one.lines for _, one in held), hashes, alike, differ, most)


def _alike(one: KeyTold, two: KeyTold) -> bool:
    return (one.what == two.what != 0) or (one.usd == two.usd != 0)


def _differ(one: KeyTold, two: KeyTold) -> bool:
    return 0 not in (one.what, two.what) and one.what != two.what and one.usd != two.usd


def _judge(again: Mapping[str, _Again]) -> dict[str, Fate]:
    """What becomes of a part's days; a day that is the part's alone is not in it."""
    shared = {day: one for day, one in again.items() if one.hashes}
    hashes, differ = sum(one.hashes for one in shared.values()), sum(one.differ for one in shared.values())
    nearly = hashes >= NEARLY * sum(one.lines for one in shared.values())
    out: dict[str, Fate] = {}
    for day, one in shared.items():
        if 2 * one.alike >= one.lines or (nearly and 2 * differ < hashes):
            out[day] = "newer"
        elif nearly:
            out[day] = "apart"
        elif one.alike >= FEW * one.lines:
            out[day] = "few"
    return out


def _told_apart(found: Sequence[_Apart], fate: Fate) -> Finding:
    older, newer = sum((one.older for one in found), ZERO), sum((one.newer for one in found), ZERO)
    days = count_of(len({one.day for one in found}), "day")
    said = f"two files tell {days} apart: {cents(older)} in the older, {cents(newer)} in the newer; {_WORDS[fate]}"
    return Finding(subject="export", code="bill-uncounted", message=said)
