"""A mapping in parts: no record of it outgrows its limit, and only what changed is written."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import Conflict
from pilotlight.ports.state import LARGEST
from pilotlight.state_schema import parted
from pilotlight.state_schema.decision_records import IDLE
from pilotlight.state_schema.parted import FULL, Parted
from pilotlight.state_schema.table import Format, Part, Table
from pilotlight.units import EPOCH, Seconds
from pilotlight.world.world_clock import VirtualClock


class Number(Part[int], frozen=True, kw_only=True):
    """Numbers by name."""


NUMBER = Parted(Table("number", Format(Number)), Number)


class Counting(MemoryState):
    """A store that remembers which keys were written."""

    def __init__(self) -> None:
        super().__init__(VirtualClock(EPOCH))
        self.puts: list[tuple[str, int]] = []

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Remember, and put."""
        self.puts.append((key, len(value)))
        return super().put(key, value, if_version=if_version, ttl_s=ttl_s)


NUMBERS = st.dictionaries(st.text("abcde", min_size=1, max_size=3), st.integers(0, 9), max_size=20)


@given(written=st.lists(NUMBERS, min_size=1, max_size=5), full=st.sampled_from([30, 60, 32_000]))
def test_what_was_written_last_is_read(written: list[dict[str, int]], full: int) -> None:
    """Whatever was there before, and however small a part is, the last mapping is read, each name from one part."""
    state = Counting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parted, "FULL", full)
        for values in written:
            NUMBER.write(state, "c", NUMBER.read(state, "c"), values)
            found = NUMBER.read(state, "c")
            assert found.values == values
            assert sum(len(part.value.items) for part in found.parts.values()) == len(values)


def test_a_small_mapping_is_one_record() -> None:
    """It is written whole and goes when it is empty."""
    state = Counting()
    was = NUMBER.write(state, "c", NUMBER.read(state, "c"), {f"n{n}": n for n in range(100)})
    assert [key for key, _ in state.scan("").items] == ["number/c/x"]
    NUMBER.write(state, "c", was, {})
    assert state.scan("").items == []


def test_only_parts_that_changed_are_written() -> None:
    """One name of many thousands costs one small record; nothing new costs none."""
    state = Counting()
    was = NUMBER.write(state, "c", NUMBER.read(state, "c"), {f"node-{n}": n for n in range(5000)})
    state.puts.clear()
    was = NUMBER.write(state, "c", was, dict(was.values))
    assert state.puts == []
    NUMBER.write(state, "c", was, {**was.values, "node-7": 0})
    ((_, size),) = state.puts
    assert size < 1.2 * FULL


def test_a_name_stays_in_its_part() -> None:
    """A part that was full takes no new name, and keeps those it has, also when most have gone."""
    state = Counting()
    was = NUMBER.write(state, "c", NUMBER.read(state, "c"), {f"node-{n}": n for n in range(5000)})
    root = dict(was.parts["c/x"].value.items)
    kept = dict(list(root.items())[:3])
    NUMBER.write(state, "c", was, {**kept, "new": 1})
    found = NUMBER.read(state, "c")
    assert found.values == {**kept, "new": 1}
    assert found.parts["c/x"].value.items == kept


def test_another_cluster_is_left_alone() -> None:
    """Clusters whose names begin alike have parts of their own."""
    state = Counting()
    NUMBER.write(state, "c", NUMBER.read(state, "c"), {"a": 1})
    NUMBER.write(state, "cc", NUMBER.read(state, "cc"), {"a": 2})
    assert NUMBER.read(state, "c").values == {"a": 1}


def test_two_writers_of_a_part_cannot_both_win() -> None:
    """Who read before another wrote the same part raises Conflict; whoever adds starts again and both are there."""
    state = Counting()
    was = NUMBER.read(state, "c")
    NUMBER.write(state, "c", was, {"a": 1})
    with pytest.raises(Conflict):
        NUMBER.write(state, "c", was, {"b": 2})
    NUMBER.add(state, "c", {"b": 2})
    assert NUMBER.read(state, "c").values == {"a": 1, "b": 2}


def test_twenty_thousand_idle_nodes_fit_their_parts() -> None:
    """With node names as long as Kubernetes allows, no part passes a quarter of the limit."""
    state = Counting()
    idle = {f"node-{n:05d}-".ljust(253, "x"): EPOCH + timedelta(seconds=n, microseconds=1) for n in range(20_000)}
    IDLE.write(state, "c", IDLE.read(state, "c"), idle)
    assert max(size for _, size in state.puts) < LARGEST / 4
    assert IDLE.read(state, "c").values == idle
