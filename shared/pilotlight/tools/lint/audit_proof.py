"""Proof that an audit chain is as it was written, or the first of its records that is not; and its lines, as an export.

A chain proves itself up to its last link: whoever rewrites a record has to rewrite every link behind it. That, and a
tail that was cut, show only against an anchor: head and count as they were told elsewhere.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal

import msgspec

from pilotlight import typed_json
from pilotlight.facts.decisions import Link, LinkKind
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import COST
from pilotlight.state_schema.decision_records import DECISION, HEAD, LINKS
from pilotlight.state_schema.table import Table, pages
from pilotlight.units import HOUR


class AuditLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One link as an export has it: ``hash`` is the SHA-256 of the bytes of ``link``, whose ``digest`` is that of the
    bytes of ``record``. ``record`` is null of a decision that was filed once more under a later link.
    """

    hash: str
    link: msgspec.Raw
    record: msgspec.Raw


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """Head and count of a chain as they were told outside its store; ``at`` is None where a person typed it."""

    seq: int
    hash: str
    at: datetime | None = None


Tampering = Literal["edited", "cut", "moved", "added", "rewritten"]
"""``edited``: a record or its link is not what was written. ``cut``: it is missing. ``moved``: it stands elsewhere, or
twice. ``added``: it is in no link. ``rewritten``: a whole stretch was made anew, so that only an anchor shows it.
"""


class Tampered(msgspec.Struct, frozen=True, kw_only=True):
    """The first record of a chain that is wrong: its place, its id where it is known, and what shows it."""

    seq: int
    how: Tampering
    id: str
    why: str


class ChainProof(msgspec.Struct, frozen=True, kw_only=True):
    """A chain as it was read: its first and last place, the hash of the last, and the first that is wrong, if one is.

    ``expired`` are decisions and costs that the store keeps no longer, ``anchors`` those that hold, ``costs`` the links
    that say what a node came to.
    """

    first: int = 0
    last: int = 0
    head: str = ""
    expired: int = 0
    anchors: int = 0
    costs: int = 0
    tampered: Tampered | None = None


NULL = msgspec.Raw(b"null")

LATELY = 1000
"""A decision that is filed twice, by a worker that stood still, has its two links within so many."""

_line = typed_json.decoder(AuditLine)
_link = typed_json.decoder(Link)


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


KEPT = timedelta(seconds=(DECISION.ttl_s or 0) - HOUR)
"""A decision of so long ago may have left the store with its age."""
RECORDS: Mapping[LinkKind, Table[Any]] = {"decision": DECISION, "cost": COST}
"""Where the records are that links of a kind name."""


def lines(state: State, cluster: str, after: int = 0) -> Iterator[bytes]:
    """The chain as an export has it. A decision that was filed twice stands with the link that is of its record."""
    chain = links(state, cluster, after)
    of_id: dict[str, list[Link]] = {}
    for link in chain:
        of_id.setdefault(link.id, []).append(link)
    for link in chain:
        record = _record(state, cluster, link)
        twice = len(of_id[link.id]) > 1 and _seat(of_id[link.id], record) != link.seq
        yield line_of(link, b"" if twice else record)


def _record(state: State, cluster: str, link: Link) -> bytes:
    table = RECORDS.get(link.kind)
    stored = state.get(table.key(f"{cluster}/{link.id}")) if table is not None else None
    return stored.value if stored else b""


def _seat(links: Sequence[Link], record: bytes) -> int:
    """Which of one decision's links the record is of; the last where it is of none."""
    digest = sha256(record).hexdigest()
    return next((link.seq for link in links if link.digest == digest), links[-1].seq)


def strangers(state: State, cluster: str) -> list[str]:
    """Decisions, and then costs, that are in no link though the chain had begun: somebody put them there.

    The records are read first, for a link is written before its record.
    """
    within = {kind: table.key(f"{cluster}/") for kind, table in RECORDS.items()}
    ids = {kind: [key.removeprefix(key_) for key, _ in pages(state, key_)] for kind, key_ in within.items()}
    chain = links(state, cluster)
    known, since = {link.id for link in chain}, min((link.id for link in chain if link.kind == "decision"), default="~")
    decisions = [id for id in ids["decision"] if id not in known and id > since]
    return decisions + [id for id in ids["cost"] if id not in known]


def links(state: State, cluster: str, after: int = 0) -> list[Link]:
    """The links behind a place, in their order. The head is read first: what is added meanwhile is not in it."""
    head = HEAD.get(state, cluster)
    if head is None or not head.value.links:
        return []
    found = {link.seq: link for link in head.value.links}
    first = min(found)
    # A record begins at its first link: the one that has `after` may begin earlier, by as many as one holds.
    for entry in LINKS.scan(state, f"{cluster}/"):
        if entry.value.links and entry.value.links[-1].seq > after:
            found |= {link.seq: link for link in entry.value.links if link.seq < first}
    return [link for seq, link in sorted(found.items()) if seq > after]
