"""Records of the state: what was written comes back, and what cannot be read is named and refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.errors import Corrupt
from pilotlight.facts.memory import Memory
from pilotlight.state_schema.table import Format


class Lamp(msgspec.Struct, frozen=True, kw_only=True):
    """A record with a field that later code added."""

    gas: int
    lit: bool = False


LAMP = Format(Lamp, 3)
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
    """The schema stands at the front, where people see it; a kind begins with the first."""
    assert LAMP.write(Lamp(gas=1)) == b'{"schema":3,"gas":1,"lit":false}'


def test_a_record_without_a_field_that_has_a_default_is_read() -> None:
    """In a rolling deploy the worker that came first writes fewer fields under the same schema."""
    assert LAMP.read("lamp/a", b'{"schema":3,"gas":7}') == Lamp(gas=7)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        pytest.param(b"", "truncated", id="empty"),
        pytest.param(b'{"schema":3,"gas":', "truncated", id="cut off"),
        pytest.param(b"\x00\xff\x80", "cannot be read", id="not text"),
        pytest.param(b'{"schema":3,"gas":"\xff"}', "cannot be read", id="broken UTF-8 inside"),
        pytest.param(b'{"schema":4,"gas":1}', "under schema 4, .* reads schema 3", id="a newer schema"),
        pytest.param(b'{"schema":"x","gas":1}', 'under schema "x"', id="a schema that is no number"),
        pytest.param(b'{"schema":0,"gas":1}', "under schema 0, .* reads schema 3", id="a schema below the first"),
        pytest.param(
            b'{"schema":3,"gas":1,"price":2}', "'price'", id="a field nobody has, so a newer or foreign writer"
        ),
        pytest.param(b'{"schema":3,"gas":"much"}', r"\$.gas", id="a field of the wrong type"),
        pytest.param(b'{"schema":2,"gas":1}', "under schema 2, .* reads schema 3", id="an earlier schema"),
        pytest.param(b'{"gas":1}', "under no schema, .* reads schema 3", id="no schema"),
        pytest.param(b'"claimed"', "got `str`", id="a foreign value"),
        pytest.param(b"7", "got `int`", id="a bare number"),
        pytest.param(b"[1]", "got `array`", id="a list"),
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
