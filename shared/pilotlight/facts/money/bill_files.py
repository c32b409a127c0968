"""A bill that lies in files: which there are, and what each of them comes to by itself."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from struct import Struct
from typing import NamedTuple

import msgspec

from pilotlight.facts.money.bill import Commitment


class Line(NamedTuple):
    """Lines of a bill that are alike, as one."""

    day: date | None  # Day of the usage, UTC; None where the line has no time that can be read.
    team: str  # The team's tag, or empty.
    pool: str  # The pool's tag: the cloud's name or the policy's, or empty.
    service: str  # The cloud's service.
    account: str  # The account that used it.
    payer: str  # The account that pays.
    tags: tuple[str | None, ...]  # Values of the scope's keys, in their order; None for one that it lacks.
    currency: str  # Of the amount, by its code.
    doubt: int  # Number of the reason why it cannot be counted; 0 for none.
    amount: Decimal | None  # In its currency; None where it is not told.
    rows: int  # Lines of the bill that are in it.
    reach: datetime | None  # The latest end of usage of at most a day.
    egress: bool = False  # It is data that was moved.
    instance: str = ""  # The machine that it is of, where the reader can tell.
    effective: Decimal | None = None  # EffectiveCost: with commitments amortised; None where it is not told.
    listed: Decimal | None = None  # ListCost: without any discount; None where it is not told.
    commitment: Commitment = ""  # What it is of a commitment discount.


SAMPLED = Struct(">IHHHH")
"""Bytes of one hash in a sample: the hash, then a ``KeyTold``."""


class DayKeys(msgspec.Struct, frozen=True, array_like=True):
    """Lines of one day of a file, to be told apart from another file's: how many, their sums, and a sample of them.

    The sample has every line whose hash is at most ``cut``, 12 bytes each, as ``each_line`` reads them. It is all of
    them unless the day has too many. A hash is of what a line keeps though its service is renamed: its resource, hour
    and category.
    """

    lines: int
    usd: Decimal
    cut: int
    sample: bytes
    effective: Decimal | None = None  # The sum by EffectiveCost, and by ListCost; None where it is not told.
    listed: Decimal | None = None

    def each_line(self) -> Iterator[tuple[int, "KeyTold"]]:
        """Hashes of the sample's lines, with what is told of each."""
        for key, *told in SAMPLED.iter_unpack(self.sample):
            yield key, KeyTold(*told)


class KeyTold(NamedTuple):
    """What a file tells of lines of one hash and one service."""

    service: int  # Two bytes of their service.
    what: int  # Two bytes of what they are of: their SKUs, or their descriptions without figures; 0 where none is told.
    usd: int  # Two bytes of their sum; 0 for none.
    lines: int  # How many.


class BillListing(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a bill as they lie there. ``word`` is the same while they, and the rules they are read by, are.

    ``versions`` are the files that were written at once, the oldest first: the whole may be written again beside
    itself. Each file is read by itself; of very many in one version some are read together, as one group.
    ``numbered`` says which versions are one by the numbers in their files' names alone: some of them may be the whole
    again. ``replaced`` counts files that are not current.
    """

    word: str
    versions: Sequence[Sequence[tuple[str, ...]]]
    numbered: frozenset[int] = frozenset()
    replaced: int = 0

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """What is read at once, in order."""
        return tuple(group for version in self.versions for group in version)

    @property
    def names(self) -> tuple[str, ...]:
        """Every file."""
        return tuple(name for group in self.groups for name in group)

    def version_of(self, name: str) -> frozenset[str]:
        """The first files of the groups in the version of the group that begins with ``name``."""
        versions = (frozenset(group[0] for group in version) for version in self.versions)
        return next(version for version in versions if name in version)

    @property
    def several(self) -> bool:
        """True where one file may repeat another."""
        return len(self.versions) > 1 or bool(self.numbered)


class BillFile(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of a file of a bill, or of a group. Kept under ``bill-file/<cluster>/<number>`` until all are read.

    ``folded`` says which details were summed up, where a file has more of them than are kept. ``parts`` and ``stamp``
    are as a ``MeterDay``'s.
    """

    word: str  # The listing's that it is of.
    name: str  # The group's first file.
    digests: frozenset[str]  # Of what is in its files: one that is there twice counts once.
    lines: tuple[Line, ...] = ()  # Its sums.
    keys: Mapping[str, DayKeys] = {}  # By day; only where one file of the listing may repeat another.
    missing: tuple[str, ...] = ()  # Columns that no bill can be read without.
    unread: str = ""  # Why it cannot be read.
    folded: tuple[str, ...] = ()  # A sentence each.
    since: date = date.min  # The first day that is read of all of the listing.
    parts: int = 0  # Further records.
    stamp: str = ""  # Of what is in them.
