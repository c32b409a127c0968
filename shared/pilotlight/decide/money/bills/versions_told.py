"""Findings on two files of a bill that tell a day apart: both sums, in each basis that they differ in."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

import msgspec

from pilotlight.facts.money.bill_files import DayKeys, Line
from pilotlight.facts.workload import Finding
from pilotlight.units import cents, count_of

ZERO = Decimal(0)
MOST_NAMED = 4

Fate = Literal["newer", "few", "apart"]

WORDS: dict[Fate, str] = {
    "newer": "the newer counts",
    "few": "both count, for they share few lines",
    "apart": "both count, for neither SKUs nor dollars are alike: take away the file that is not current",
}
BASES = ("", "by EffectiveCost ", "by ListCost ")
"""Words before a sum of each basis: none before billed dollars."""

Sums = tuple[Decimal, Decimal | None, Decimal | None]
"""A day's, by basis; None for one that a file does not tell."""


class Apart(NamedTuple):
    """A day of which two versions have another sum."""

    day: str
    older: Sums
    newer: Sums
    files: tuple[str, ...]


def with_bases(keys: Mapping[str, DayKeys], lines: Iterable[Line]) -> dict[str, DayKeys]:
    """The same with each day's sums in the other bases, from its lines."""
    days: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        days[str(line.day)].append(line)
    return {
        day: msgspec.structs.replace(
            one,
            effective=_sum(line.effective for line in days[day]),
            listed=_sum(line.listed for line in days[day]),
        )
        for day, one in keys.items()
    }


def sums_of(found: Sequence[DayKeys]) -> Sums:
    """Of several files' lines of a day."""
    return (
        sum((one.usd for one in found), ZERO),
        _sum(one.effective for one in found),
        _sum(one.listed for one in found),
    )


def differing(older: Sums, newer: Sums) -> list[int]:
    """Numbers of the bases that both tell, and not alike."""
    return [n for n, two in enumerate(zip(older, newer, strict=True)) if None not in two and two[0] != two[1]]


def told_apart(found: Sequence[Apart], fate: Fate) -> Finding:
    """The finding on all days of one fate."""
    days = count_of(len({one.day for one in found}), "day")
    bases = sorted({n for one in found for n in differing(one.older, one.newer)}) or [0]
    sums = ", ".join(
        f"{BASES[n]}{_dollars(one.older[n] for one in found)} in the older, "
        f"{_dollars(one.newer[n] for one in found)} in the newer"
        for n in bases
    )
    said = f"two files tell {days} apart: {sums}; {WORDS[fate]}"
    if fate == "apart":
        names = list(dict.fromkeys(name.rpartition("/")[2] for one in found for name in one.files))
        said += f", {' or '.join(names[:MOST_NAMED])}{' or another' if len(names) > MOST_NAMED else ''}"
    return Finding(subject="export", code="bill-uncounted", message=said)


def _sum(found: Iterable[Decimal | None]) -> Decimal | None:
    """None where one is not told."""
    told = list(found)
    return None if None in told else sum((one for one in told if one is not None), ZERO)


def _dollars(sums: Iterable[Decimal | None]) -> str:
    return cents(sum((one for one in sums if one is not None), ZERO))
