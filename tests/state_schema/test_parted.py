"""A mapping in parts: no record of it outgrows its limit, and only what changed is written."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.records import Format
from pilotlight.errors import Conflict
from pilotlight.ports import LARGEST
from pilotlight.state_schema.decisions import IDLE
from pilotlight.state_schema.parted import Part, Parted
from pilotlight.state_schema.table import Table
from pilotlight.units import EPOCH, Seconds
from pilotlight.world.clock import VirtualClock


class Number(Part[int], frozen=True, kw_only=True):
    """Numbers by name."""


def parted(parts: int) -> Parted[int]:
    """Numbers in so many parts."""
    return Parted(Table("number", Format(Number)), Number, parts)


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


@given(written=st.lists(NUMBERS, min_size=1, max_size=5), parts=st.lists(st.sampled_from([1, 4, 7]), min_size=5))
def test_what_was_written_last_is_read(written: list[dict[str, int]], parts: list[int]) -> None:
    """Whatever was there before, also under another number of parts, the last mapping is read, and nothing else."""
    state = Counting()
    for values, count in zip(written, parts, strict=False):
        table = parted(count)
        table.write(state, "c", table.read(state, "c"), values)
        assert table.read(state, "c").values == values
    parted(4).write(state, "c", parted(4).read(state, "c"), {})
    assert state.scan("").items == []


def test_only_parts_that_changed_are_written() -> None:
    """One name of many costs one record; nothing new costs none."""
    state, table = Counting(), parted(16)
    was = table.write(state, "c", table.read(state, "c"), {f"n{n}": n for n in range(100)})
    state.puts.clear()
    was = table.write(state, "c", was, dict(was.values))
    assert state.puts == []
    table.write(state, "c", was, {**was.values, "n7": 0})
    assert len(state.puts) == 1


def test_another_cluster_is_left_alone() -> None:
    """Clusters whose names begin alike have parts of their own."""
    state, table = Counting(), parted(2)
    table.write(state, "c", table.read(state, "c"), {"a": 1})
    table.write(state, "cc", table.read(state, "cc"), {"a": 2})
    assert table.read(state, "c").values == {"a": 1}


def test_two_writers_of_a_part_cannot_both_win() -> None:
    """Who read before another wrote the same part raises Conflict."""
    state, table = Counting(), parted(1)
    was = table.read(state, "c")
    table.write(state, "c", was, {"a": 1})
    with pytest.raises(Conflict):
        table.write(state, "c", was, {"a": 2})
    with pytest.raises(Conflict):
        table.write(state, "c", table.read(state, "c")._replace(parts=was.parts), {"a": 3})


def test_twenty_thousand_idle_nodes_fit_their_parts() -> None:
    """With node names as long as Kubernetes allows, no part passes half of the limit."""
    state = Counting()
    idle = {f"node-{n:05d}-".ljust(253, "x"): EPOCH + timedelta(seconds=n, microseconds=1) for n in range(20_000)}
    IDLE.write(state, "c", IDLE.read(state, "c"), idle)
    assert max(size for _, size in state.puts) < LARGEST / 2
    found: dict[str, datetime] = dict(IDLE.read(state, "c").values)
    assert found == idle
