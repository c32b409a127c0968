"""Proof that an audit chain is as it was written, or the first of its records that is not.

A chain proves itself up to its last link: whoever rewrites a record has to rewrite every link behind it. That, and a
tail that was cut, show only against an anchor: head and count as they were told elsewhere.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from pilotlight.facts.alerts.audit_lines import Anchor, AuditLine, ChainProof, Tampered, Tampering
from pilotlight.facts.decisions import Link

NULL = msgspec.Raw(b"null")

LATELY = 1000
"""A decision that is filed twice, by a worker that stood still, has its two links within so many."""

_line = msgspec.json.Decoder(AuditLine)
_link = msgspec.json.Decoder(Link)


class _Wrong(Exception):
    """The first record that is wrong."""

    def __init__(self, seq: int, how: Tampering, why: str, id: str = "") -> None:
        super().__init__(why)
        self.tampered = Tampered(seq=seq, how=how, id=id, why=why)


def verify(
    lines: Iterable[bytes],
    anchors: Sequence[Anchor] = (),
    *,
    kept_since: datetime | None = None,
    copy: Mapping[int, str] | None = None,
) -> ChainProof:
    """Read a chain's lines in their order, once.

    Decisions from before ``kept_since`` may be without their record. ``copy`` are hashes by place of another copy.
    """
    walk = _Walk(iter(lines), anchors, kept_since, copy or {})
    try:
        walk.run()
    except _Wrong as wrong:
        return walk.verdict(wrong.tampered)
    return walk.verdict(None)


class _Walk:
    def __init__(
        self, lines: Iterator[bytes], anchors: Sequence[Anchor], kept_since: datetime | None, copy: Mapping[int, str]
    ) -> None:
        self._lines, self._kept_since, self._copy = lines, kept_since, copy
        self._anchors = {anchor.seq: anchor for anchor in anchors}
        self._held: Anchor | None = None
        self._first: Link | None = None
        self._last: Link | None = None
        self._hash = ""
        self._dropped: tuple[int, str] | None = None
        self._without: dict[str, Link] = {}
        self._lately = deque[str](maxlen=LATELY)
        self._expired = self._kept = self._costs = 0

    def run(self) -> None:
        """Raises ``_Wrong``."""
        for raw in self._lines:
            self._step(raw)
        self._beginning()
        for link in sorted(self._without.values(), key=lambda link: link.seq):
            if self._kept_since is None or link.at >= self._kept_since:
                raise _Wrong(link.seq, "cut", "its record is gone", link.id)
            self._expired += 1
        last = self._last.seq if self._last else 0
        if gone := sorted(seq for seq in {*self._anchors, *self._copy} if seq > last):
            raise _Wrong(last + 1, "cut", f"the chain ends at {last}, and elsewhere it has {gone[-1]}")

    def verdict(self, tampered: Tampered | None) -> ChainProof:
        """The proof, as far as the chain was read."""
        return ChainProof(
            first=self._first.seq if self._first else 0,
            last=self._last.seq if self._last else 0,
            head=self._hash,
            expired=self._expired,
            anchors=self._kept,
            costs=self._costs,
            tampered=tampered,
        )

    def _step(self, raw: bytes) -> None:
        due = self._last.seq + 1 if self._last else None
        try:
            line = _line.decode(raw)
            link = _link.decode(line.link)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise _Wrong(due or 1, "edited", "its line cannot be read") from None
        if sha256(line.link).hexdigest() != line.hash:
            raise _Wrong(due or link.seq, "edited", "its link is not the one that was written", link.id)
        if self._first is None or self._last is None:
            self._first = link
        elif link.seq != due:
            raise self._out_of_order(link, self._last.seq + 1)
        elif link.prev != self._hash:
            raise self._broken(link, line.hash, self._last)
        self._record(link, line)
        self._anchor(link, line.hash)
        if link.kind == "checkpoint":
            self._dropped = int(link.id), link.digest
        self._costs += link.kind == "cost"
        self._last, self._hash = link, line.hash

    def _record(self, link: Link, line: AuditLine) -> None:
        if link.kind == "checkpoint":
            return
        if line.record == NULL:
            if link.id not in self._lately:
                self._without[link.id] = link
        elif sha256(line.record).hexdigest() != link.digest:
            raise _Wrong(link.seq, "edited", "its record is not the one that was written", link.id)
        else:
            self._without.pop(link.id, None)
            self._lately.append(link.id)

    def _anchor(self, link: Link, hash: str) -> None:
        if (theirs := self._copy.get(link.seq)) is not None and theirs != hash:
            raise _Wrong(link.seq, "rewritten", "another copy of the chain has another record here", link.id)
        if (anchor := self._anchors.get(link.seq)) is None:
            return
        if anchor.hash != hash:
            first = self._held.seq + 1 if self._held else self._first.seq if self._first else 1
            where = f"between {first} and {link.seq}" if first != link.seq else f"at {first}"
            raise _Wrong(first, "rewritten", f"the chain was made anew {where}: an anchor says otherwise")
        self._held, self._kept = anchor, self._kept + 1

    def _out_of_order(self, link: Link, due: int) -> _Wrong:
        if self._first is not None and link.seq < self._first.seq:
            first = min({link.seq, *_places(self._lines)})
            return _Wrong(first, "moved", f"{self._first.seq} stands in its place")
        if link.seq < due:
            return _Wrong(link.seq, "moved", f"it stands once more behind {due - 1}", link.id)
        if due in _places(self._lines):
            return _Wrong(due, "moved", f"{link.seq} stands in its place")
        gone = f"up to {link.seq - 1} " if link.seq - 1 > due else ""
        return _Wrong(due, "cut", f"{gone}missing: {link.seq} follows {due - 1}".strip())

    def _broken(self, link: Link, hash: str, last: Link) -> _Wrong:
        """Two links do not fit. The next one says which of them is not the one that was written."""
        after = next(self._lines, None)
        this = after is not None and _prev(after) not in ("", hash)
        wrong = link if this else last
        return _Wrong(wrong.seq, "edited", "it was written anew: its neighbour names another", wrong.id)

    def _beginning(self) -> None:
        first = self._first
        if first is None or (first.seq == 1 and not first.prev):
            return
        if self._dropped and (self._dropped[0] >= first.seq or self._dropped == (first.seq - 1, first.prev)):
            return
        raise _Wrong(
            1, "cut", f"the chain begins at {first.seq}, and no checkpoint says that what is before was dropped"
        )


def _places(lines: Iterable[bytes]) -> Collection[int]:
    found = set[int]()
    for raw in lines:
        try:
            found.add(_link.decode(_line.decode(raw).link).seq)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return found


def _prev(raw: bytes) -> str:
    try:
        return _link.decode(_line.decode(raw).link).prev
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def line_of(link: Link, record: bytes) -> bytes:
    """One line of an export; ``record`` is empty where there is none."""
    line = AuditLine(
        hash=link.hash, link=msgspec.Raw(msgspec.json.encode(link)), record=msgspec.Raw(record) if record else NULL
    )
    return msgspec.json.encode(line)


def hashes(lines: Iterable[bytes]) -> dict[int, str]:
    """The hash at each place of a copy."""
    found: dict[int, str] = {}
    for raw in lines:
        line = _line.decode(raw)
        found[_link.decode(line.link).seq] = line.hash
    return found
