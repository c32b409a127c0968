"""Records of the state: what was written comes back, and what cannot be read is named and refused."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.records import Format
from pilotlight.errors import Corrupt
from pilotlight.facts.capacity import InFlight
from pilotlight.facts.memory import Memory


class Lamp(msgspec.Struct, frozen=True, kw_only=True):
    """A record that has seen two schemas before this one."""

    gas: int
    lit: bool = False


def _of_number(value: int) -> dict[str, object]:
    return {"oil": int(value)}


def _gas_for_oil(value: dict[str, object]) -> dict[str, object]:
    return {"gas": value["oil"]}


LAMP = Format(Lamp, _of_number, _gas_for_oil)
MEMORY = Format(Memory)


@given(gas=st.integers(0, 2**60), lit=st.booleans())
def test_what_was_written_is_read(gas: int, lit: bool) -> None:
    """Reading a written record gives an equal value."""
    lamp = Lamp(gas=gas, lit=lit)
    assert LAMP.read("lamp/a", LAMP.write(lamp)) == lamp


@given(first=st.integers(0, 9), then=st.integers(0, 9))
def test_a_key_that_was_written_anew_is_read_anew(first: int, then: int) -> None:
    """What a key held before says nothing of what it holds now; a record that reads the same is the same value."""
    lamps = [Lamp(gas=first), Lamp(gas=then), Lamp(gas=first)]
    assert [LAMP.read("lamp/b", LAMP.write(lamp)) for lamp in lamps] == lamps


def test_every_record_says_its_schema_first() -> None:
    """The schema is one more than the migrations there are, and stands at the front where people see it."""
    assert LAMP.write(Lamp(gas=1)) == b'{"schema":3,"gas":1,"lit":false}'


@pytest.mark.parametrize(
    "old",
    [
        pytest.param(b"7", id="a bare number, from before there were objects"),
        pytest.param(b'{"schema":2,"oil":7}', id="an object under the schema before"),
        pytest.param(b'{"schema":3,"gas":7}', id="this schema, without a field that has a default"),
    ],
)
def test_older_records_are_brought_to_this_schema(old: bytes) -> None:
    """Whatever schema a record was written under, the same value is read."""
    assert LAMP.read("lamp/a", old) == Lamp(gas=7)


def test_a_record_from_before_schemas_is_read() -> None:
    """Capacity in flight as it was written before records said their schema."""
    written = (
        b'{"decision":"00001-aa","offering":"a100/p4d.24xlarge/on-demand","pool":"a100","count":2,'
        b'"requested_at":"2026-11-20T12:00:00Z","ready_by":"2026-11-20T12:05:00Z","demands":["u1","u2"]}'
    )
    entry = Format(InFlight).read("inflight/c/00001-aa.0", written)
    assert (entry.count, entry.demands) == (2, ("u1", "u2"))
    assert entry.requested_at == datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        pytest.param(b"", "truncated", id="empty"),
        pytest.param(b'{"schema":3,"gas":', "truncated", id="cut off"),
        pytest.param(b"\x00\xff\x80", "cannot be read", id="not text"),
        pytest.param(b'{"schema":3,"gas":"\xff"}', "cannot be read", id="broken UTF-8 inside"),
        pytest.param(b'{"schema":4,"gas":1}', "schema 4", id="a newer schema"),
        pytest.param(b'{"schema":"x","gas":1}', "names no schema: 'x'", id="a schema that is no number"),
        pytest.param(b'{"schema":0,"gas":1}', "names no schema: 0", id="a schema below the first"),
        pytest.param(
            b'{"schema":3,"gas":1,"price":2}', "'price'", id="a field nobody has, so a newer or foreign writer"
        ),
        pytest.param(b'{"schema":3,"gas":"much"}', r"\$.gas", id="a field of the wrong type"),
        pytest.param(b'{"schema":2,"other":1}', "no record of schema 2", id="another thing under an old schema"),
        pytest.param(b'"claimed"', "no record of schema 1", id="a foreign value under an old schema"),
        pytest.param(b"[1]", "no record of schema 1", id="a list"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(record: bytes, says: str) -> None:
    """The refusal names the key, what is wrong and that nothing was written."""
    with pytest.raises(Corrupt, match=says) as refused:
        LAMP.read("lamp/a", record)
    assert str(refused.value).startswith("state lamp/a: ")
    assert "left as it is" in str(refused.value)


@given(record=st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_no_bytes_make_a_reader_raise_anything_but_corrupt(record: bytes) -> None:
    """Arbitrary bytes are read or refused."""
    try:
        LAMP.read("lamp/a", record)
    except Corrupt:
        return


def test_a_foreign_object_is_not_taken_for_an_empty_memory() -> None:
    """All fields of a memory have defaults: an object of other fields is still refused, and so is no object."""
    for foreign in (b'{"hello":1}', b"7", b"null"):
        with pytest.raises(Corrupt, match="memory/c"):
            MEMORY.read("memory/c", foreign)
