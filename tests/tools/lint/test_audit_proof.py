"""An audit chain that was tampered with names its first wrong record."""

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import msgspec
import pytest

from pilotlight.facts.decisions import Chain, Link, LinkKind
from pilotlight.tools.lint.audit_proof import Anchor, Tampering, line_of, verify

START = datetime(2026, 11, 20, tzinfo=UTC)


def chain(records: Sequence[bytes], first: Chain | None = None) -> list[bytes]:
    """The lines of a chain over these records, whose ids are their numbers."""
    head, out = first or Chain(), list[bytes]()
    for n, record in enumerate(records, 1):
        kind: LinkKind = "cost" if n % 3 == 0 else "decision"
        link = head.next_link(kind, f"d{n}", START + timedelta(minutes=n), sha256(record).hexdigest())
        out.append(line_of(link, record))
        head = Chain(links=(link,))
    return out


def record(n: int) -> bytes:
    """A record that tells its number."""
    return b'{"id":"d%d","usd":"%d"}' % (n, n)


RECORDS = [record(n) for n in range(1, 31)]
LINES = chain(RECORDS)


def at(line: bytes) -> tuple[int, str]:
    """Place and hash of a line."""
    whole = msgspec.json.decode(line)
    return whole["link"]["seq"], whole["hash"]


def anchor(line: bytes) -> Anchor:
    """A line's place and hash, as told elsewhere."""
    seq, hash = at(line)
    return Anchor(seq=seq, hash=hash)


def test_an_untouched_chain_is_whole() -> None:
    """Its first and last place and its head are said, and its anchors hold."""
    found = verify(LINES, [anchor(LINES[9]), anchor(LINES[-1])])
    assert (found.first, found.last, found.head, found.anchors) == (1, 30, at(LINES[-1])[1], 2)
    assert found.tampered is None
    assert verify([]).last == 0


def edit_record(lines: list[bytes], k: int, luck: random.Random) -> int:
    """Another record under the same link."""
    lines[k] = lines[k].replace(RECORDS[k], record(k + 1000 + luck.randrange(999)))
    return k + 1


def drop_record(lines: list[bytes], k: int, _: random.Random) -> int:
    """The link stays, its record goes."""
    lines[k] = lines[k].replace(RECORDS[k], b"null")
    return k + 1


def flip_a_byte(lines: list[bytes], k: int, luck: random.Random) -> int:
    """One bit of a line, wherever."""
    i = luck.randrange(len(lines[k]))
    lines[k] = lines[k][:i] + bytes([lines[k][i] ^ (1 << luck.randrange(7))]) + lines[k][i + 1 :]
    return k + 1


def edit_and_hash_anew(lines: list[bytes], k: int, luck: random.Random) -> int:
    """Another record, with a link that is right for it."""
    link = msgspec.json.decode(msgspec.json.encode(msgspec.json.decode(lines[k])["link"]), type=Link)
    other = record(5000 + luck.randrange(999))
    lines[k] = line_of(msgspec.structs.replace(link, digest=sha256(other).hexdigest()), other)
    return k + 1


def cut(lines: list[bytes], k: int, luck: random.Random) -> int:
    """One to three lines go."""
    del lines[k : k + 1 + luck.randrange(3)]
    return k + 1


def cut_the_tail(lines: list[bytes], k: int, _: random.Random) -> int:
    """All from one on go."""
    del lines[k:]
    return k + 1


def swap(lines: list[bytes], k: int, luck: random.Random) -> int:
    """Two lines change places."""
    other = luck.choice([n for n in range(len(lines)) if n != k])
    lines[k], lines[other] = lines[other], lines[k]
    return min(k, other) + 1


def repeat(lines: list[bytes], k: int, _: random.Random) -> int:
    """A line stands twice."""
    lines.insert(k + 1, lines[k])
    return k + 1


def rewrite_the_tail(lines: list[bytes], k: int, _: random.Random) -> int:
    """Everything from one record on, each with a right hash: only the anchors show it."""
    before = msgspec.json.decode(msgspec.json.encode(msgspec.json.decode(lines[k - 1])["link"]), type=Link)
    head = Chain(links=(before,)) if k else Chain()
    for n in range(k, len(lines)):
        other = record(n + 9000)
        link = head.next_link("decision", f"d{n + 1}", START, sha256(other).hexdigest())
        lines[n], head = line_of(link, other), Chain(links=(link,))
    return k + 1


Tamper = Callable[[list[bytes], int, random.Random], int]

WAYS: Sequence[tuple[Tamper, Sequence[Tampering]]] = (
    (edit_record, ("edited",)),
    (drop_record, ("cut",)),
    (flip_a_byte, ("edited",)),
    (edit_and_hash_anew, ("edited", "rewritten")),
    (cut, ("cut",)),
    (cut_the_tail, ("cut",)),
    (swap, ("moved",)),
    (repeat, ("moved",)),
    (rewrite_the_tail, ("edited", "rewritten")),
)


@pytest.mark.parametrize(("tamper", "how"), WAYS, ids=lambda value: getattr(value, "__name__", "-"))
def test_random_tamperings_are_found_and_named(tamper: Tamper, how: Sequence[Tampering]) -> None:
    """Over a thousand in all: with an anchor at every fifth record and the last, the first wrong record is named;
    of what was made anew with right hashes, the first that the anchor before it does not cover."""
    anchors = [anchor(line) for line in [*LINES[4::5], LINES[-1]]]
    for seed in range(120):
        luck = random.Random(seed)
        lines = list(LINES)
        first = tamper(lines, luck.randrange(len(lines)), luck)
        found = verify(lines, anchors).tampered
        assert found is not None, f"seed {seed}"
        assert found.how in how, f"seed {seed}: {found}"
        if found.how == "rewritten":
            assert found.seq <= first < found.seq + 6, f"seed {seed}: {found}"
        else:
            assert found.seq == first, f"seed {seed}: {found}"


def test_a_copy_names_the_first_record_that_was_made_anew() -> None:
    """Where an anchor gives only a stretch, another export gives the very record."""
    from pilotlight.tools.lint.audit_proof import hashes

    lines = list(LINES)
    rewrite_the_tail(lines, 17, random.Random(1))
    found = verify(lines, copy=hashes(LINES)).tampered
    assert found is not None
    assert (found.seq, found.how) == (18, "rewritten")
    assert verify(lines).tampered is None  # By itself such a chain is whole.


def test_what_left_the_store_with_its_age_is_no_tampering() -> None:
    """A decision from before what is kept may have no record; one from since may not."""
    lines = [line.replace(old, b"null") for line, old in zip(LINES, RECORDS, strict=True)][:5] + LINES[5:]
    found = verify(lines, kept_since=START + timedelta(minutes=6))
    assert (found.tampered, found.expired) == (None, 5)
    late = verify(lines, kept_since=START + timedelta(minutes=5)).tampered
    assert late is not None
    assert (late.seq, late.how) == (5, "cut")


def test_a_beginning_that_was_dropped_needs_a_checkpoint() -> None:
    """A chain that begins later than at one is cut, unless a later link says up to where it was dropped."""
    assert (found := verify(LINES[10:]).tampered) is not None
    assert (found.seq, found.how) == (1, "cut")
    tenth, last = msgspec.json.decode(LINES[9]), msgspec.json.decode(LINES[-1])
    head = Chain(links=(msgspec.convert(last["link"], Link),))
    checkpoint = line_of(head.next_link("checkpoint", "10", START, tenth["hash"]), b"")
    assert verify([*LINES[10:], checkpoint]).tampered is None
    assert verify([*LINES[11:], checkpoint]).tampered is not None


def test_a_decision_that_was_filed_twice_has_its_record_once() -> None:
    """Whichever of two workers wrote last, the other's link stands without a record."""
    head, lines = Chain(), list[bytes]()
    for body in (record(1), record(2)):
        link = head.next_link("decision", "d1", START, sha256(body).hexdigest())
        head = Chain(links=(*head.links, link))
        lines.append(line_of(link, body))
    links = head.links
    assert verify([line_of(links[0], b""), lines[1]]).tampered is None
    assert verify([lines[0], line_of(links[1], b"")]).tampered is None
    assert verify([line_of(links[0], b""), line_of(links[1], b"")]).tampered is not None
