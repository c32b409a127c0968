"""Which of a bill's files count: of an export that is written again beside itself, the newer.

A folder, a manifest or a date makes versions; a number at a name's end may be a part. Lines of two files meet in a
resource's hour and charge category; they are alike with the same SKUs or dollars, in as many lines.

::

    files                     lines that meet                             what counts        told
    ========================  ==========================================  =================  =====================
    versions                  of one service, or alike: half of a day's   the newer          both sums, if apart
    versions                  some, and a day's sums are the same         the newer          nothing
    versions                  of other services, nearly all alike         the newer          both sums, if apart
    versions                  of other services, not alike                both               both sums, the files
    numbered                  most of the same dollars: half of a day's   the newer          both sums, if apart
    numbered                  nearly all in two files, few differ in both the newer          both sums, if apart
    any                       some alike; none: nothing is told           both               both sums
    numbered                  nearly all differ, or services without SKUs both               both sums, the files
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from pilotlight.decide.money.bills.versions_told import WORDS, Apart, Fate, Sums, differing, sums_of, told_apart
from pilotlight.facts.money.bill_files import BillFile, BillListing, DayKeys, KeyTold
from pilotlight.facts.workload import Finding

NEARLY = Decimal("0.9")
"""Parts by chance have not so many hashes alike in the number of their lines."""
MOST, ALL = Decimal("0.75"), Decimal("0.99")
"""Of two alike lines of an export half lie in one other part by chance, two thirds in two, more in more."""
FEW = Decimal("0.1")
"""A part that tells fewer of another's lines again is not told of."""

DayOut = tuple[str, date | None]
"""A day that does not count of a file, by its name."""
_Told = dict[Fate, list[Apart]]


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
    return versions, gone, tuple(told_apart(told[fate], fate) for fate in WORDS if fate in told)


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
        met = _met_days(days, number)
        renamed = sum(one.renamed for one in met.values())
        all_renamed = renamed >= NEARLY * (renamed + sum(one.apart for one in met.values())) > 0
        for day, found in met.items():
            older, newer = sums_of(own[day]), sums_of(days[found.last][day])
            again = found.again + found.renamed + (found.apart if all_renamed else 0)
            # By the hour and by the day few lines are the same, and all dollars.
            whole = 2 * again >= found.lines or (older[0] == newer[0] and bool(found.again or older[0]))
            if whole:
                gone |= {(file.name, date.fromisoformat(day)) for file in versions[number]}
            fate: Fate = "newer" if whole else "apart" if found.apart > again else "few"
            if differing(older, newer) or fate == "apart":
                files = versions[number][0].name, versions[found.last][0].name
                told[fate].append(Apart(day, older, newer, files))
    return gone


def _met_days(days: Sequence[dict[str, list[DayKeys]]], number: int) -> "dict[str, _Met]":
    met: dict[str, _Met] = {}
    for day in sorted(days[number]):
        newer = {later: days[later][day] for later in range(number + 1, len(days)) if day in days[later]}
        if found := _told_again(days[number][day], newer):
            met[day] = found
    return met


def _by_day(version: Sequence[BillFile], out: set[DayOut]) -> dict[str, list[DayKeys]]:
    found: dict[str, list[DayKeys]] = defaultdict(list)
    for file in version:
        for day, keys in file.keys.items():
            if (file.name, date.fromisoformat(day)) not in out:
                found[day].append(keys)
    return found


_Lines = dict[int, list[tuple[str, KeyTold]]]
"""Lines of a day by their hash, with the name of what they are in."""


class _Met(NamedTuple):
    """Lines of a day, and those that newer versions have: of the same service, of another and alike, of another and
    not alike. ``last`` is the newest that has any."""

    lines: int
    again: int
    renamed: int
    apart: int
    last: int


def _told_again(own: Sequence[DayKeys], newer: Mapping[int, Sequence[DayKeys]]) -> _Met | None:
    """Lines of a day that newer versions have, or None where there are none."""
    cut = min(one.cut for day in (own, *newer.values()) for one in day)
    held = _lines_of("", own, cut)
    last, sums = -1, Counter[str]()
    there = {version: _lines_of("", day, cut) for version, day in newer.items()}
    for key, of_key in held.items():
        services = {one.service for _, one in of_key}
        for _, one in of_key:
            found = {version: _met(one, services, beside.get(key, ())) for version, beside in there.items()}
            last = max([last, *(version for version, of in found.items() if of)])
            sums[_kind(one, [two for of in found.values() for _, two in of])] += one.lines
    lines = sums.total() - sums["nothing"]
    return _Met(lines, sums["again"], sums["renamed"], sums["apart"], last) if last >= 0 else None


def _kind(one: KeyTold, met: Sequence[KeyTold]) -> str:
    """What those that meet a line make of it. One of $0 under another service says nothing."""
    if any(one.service == two.service for two in met):
        return "again"
    if any(one.lines == two.lines and _alike(one, two) for two in met):
        return "renamed"
    if not met:
        return "alone"
    return "apart" if one.usd else "nothing"


def _lines_of(name: str, found: Sequence[DayKeys], cut: int) -> _Lines:
    out: _Lines = defaultdict(list)
    for one in found:
        for key, told in one.each_line():
            if key <= cut:
                out[key].append((name, told))
    return out


def _met(one: KeyTold, services: Set[int], beside: Sequence[tuple[str, KeyTold]]) -> Sequence[tuple[str, KeyTold]]:
    """Lines beside one: of its service, else of services that its own file does not have in that hour."""
    same = [two for two in beside if two[1].service == one.service]
    return same or [two for two in beside if two[1].service not in services]


class _Again(NamedTuple):
    """Lines of a part's day, and those that later parts have: by hash and number, of the same dollars, alike in SKUs or
    dollars, other in both, and of another service whose SKUs are not told.

    ``priced`` are the lines that cost anything. ``by`` are the later parts that have most of them: two hold nearly all
    unless they are ``scattered``, as lines of one SKU are over the parts of one export.
    """

    lines: int
    priced: int
    hashes: int
    dollars: int
    alike: int
    differ: int
    untold: int
    by: frozenset[str]
    scattered: bool


def _told_by_parts(parts: Sequence[BillFile], told: _Told) -> set[DayOut]:
    """Days of parts that later parts tell again, with ``told`` of those whose sums differ."""
    again: dict[str, dict[str, _Again]] = {part.name: {} for part in parts}
    days = _parts_by_day(parts)
    for day, there in days.items():
        for name, one in _of_day(there, day):
            again[name][day] = one
    fates = {name: _judge(of) for name, of in again.items()}
    for day, there in days.items():
        keys = {part.name: part.keys[day] for part in there}
        found = {name: (fates[name][day], again[name][day].by) for name in keys if day in fates[name]}
        for fate, apart in _sums_apart(found, keys):
            told[fate].append(Apart(day, *apart))
    return {
        (name, date.fromisoformat(day)) for name, of in fates.items() for day, fate in of.items() if fate == "newer"
    }


def _parts_by_day(parts: Sequence[BillFile]) -> dict[str, list[BillFile]]:
    days = sorted({day for part in parts for day in part.keys})
    return {day: [part for part in parts if day in part.keys] for day in days}


def _of_day(parts: Sequence[BillFile], day: str) -> Iterator[tuple[str, _Again]]:
    later: _Lines = defaultdict(list)
    cut = parts[-1].keys[day].cut
    for part in reversed(parts):
        cut = min(cut, part.keys[day].cut)
        held = _lines_of(part.name, [part.keys[day]], cut)
        if later:
            yield part.name, _again(held, later)
        for key, of_key in held.items():
            later[key] += of_key


def _sums_apart(
    found: Mapping[str, tuple[Fate, frozenset[str]]], keys: Mapping[str, DayKeys]
) -> Iterator[tuple[Fate, tuple[Sums, Sums, tuple[str, ...]]]]:
    """A day's sums of parts that others tell again, and of these others, where they are not the same or both count.

    Of three that tell the same the middle one is held against the last.
    """
    gone = {name for name, (own, _) in found.items() if own == "newer"}
    for fate in WORDS:
        last = {name: by for name, (own, by) in found.items() if own == fate and not by & gone}
        newer = frozenset[str]().union(*last.values())
        sums = sums_of([keys[name] for name in last]), sums_of([keys[name] for name in newer])
        if differing(*sums) or (fate != "newer" and last):
            yield fate, (*sums, (*last, *sorted(newer - last.keys())))


def _again(held: _Lines, later: _Lines) -> _Again:
    """A part's day held against that of later parts."""
    sums, by = Counter[str](), Counter[str]()
    for key, of_key in held.items():
        beside = later.get(key, ())
        for _, one in of_key:
            same = _met_in_parts(one, of_key, beside) if beside else ()
            by.update(dict.fromkeys({name for name, _ in same}, one.lines))
            sums.update(dict.fromkeys(_kinds(one, [two for _, two in same]), one.lines))
    most = frozenset(name for name, lines in by.items() if lines >= FEW * sums["hashes"])
    scattered = sum(sorted(by.values())[-2:]) < NEARLY * sums["hashes"]
    return _Again(
        sums["lines"], sums["priced"], sums["hashes"], sums["dollars"], sums["alike"], sums["differ"], sums["untold"],
        most, scattered,
    )  # fmt: skip


def _kinds(one: KeyTold, same: Sequence[KeyTold]) -> Iterator[str]:
    """The figures of ``_Again`` that a line counts in."""
    yield "lines"
    if one.usd:
        yield "priced"
    if not same:
        return
    yield "hashes"
    if any(one.usd == two.usd != 0 for two in same):
        yield "dollars"
    if any(_alike(one, two) for two in same):
        yield "alike"
    elif all(_differ(one, two) for two in same):
        yield "differ"
    elif any(two.service != one.service for two in same):
        yield "untold"


def _met_in_parts(
    one: KeyTold, own: Sequence[tuple[str, KeyTold]], beside: Sequence[tuple[str, KeyTold]]
) -> Sequence[tuple[str, KeyTold]]:
    """Lines beside one, as many: of its service, else of others in parts that have as many lines in that hour."""
    met = _met(one, {two.service for _, two in own}, beside)
    if met and met[0][1].service != one.service:
        lines: dict[str, int] = defaultdict(int)
        for name, two in beside:
            lines[name] += two.lines
        met = [two for two in met if lines[two[0]] == sum(told.lines for _, told in own)]
    return [two for two in met if two[1].lines == one.lines]


def _alike(one: KeyTold, two: KeyTold) -> bool:
    return (one.what == two.what != 0) or (one.usd == two.usd != 0)


def _differ(one: KeyTold, two: KeyTold) -> bool:
    others = one.usd != two.usd or one.service != two.service
    return 0 not in (one.what, two.what) and one.what != two.what and others


def _judge(again: Mapping[str, _Again]) -> dict[str, Fate]:
    """What becomes of a part's days that share lines."""
    lines, priced, hashes, dollars, _, differ, untold = map(
        sum, zip(*[one[:7] for one in again.values()] or [(0, 0, 0, 0, 0, 0, 0)], strict=True)
    )
    scattered = any(one.scattered for one in again.values())
    nearly, some = hashes >= NEARLY * lines, untold >= FEW * lines
    same = dollars >= (ALL if scattered else MOST) * priced > 0
    out: dict[str, Fate] = {}
    for day, one in again.items():
        if not one.hashes:
            continue
        if (same and 2 * one.dollars >= one.priced) or (nearly and not scattered and 2 * (differ + untold) < hashes):
            out[day] = "newer"
        elif nearly or (some and one.untold):
            out[day] = "apart"
        elif one.alike >= FEW * one.lines:
            out[day] = "few"
    return out
