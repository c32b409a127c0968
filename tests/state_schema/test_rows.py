"""Values with more rows than a record holds: whole or as before, never some of both."""

import msgspec
import pytest

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import Unavailable
from pilotlight.ports.state import LARGEST
from pilotlight.state_schema.rows import Rows
from pilotlight.state_schema.table import Format, Table
from pilotlight.units import EPOCH, Seconds
from pilotlight.world.world_clock import VirtualClock


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines."""

    lines: tuple[str, ...] = ()
    parts: int = 0
    stamp: str = ""


LINES = Rows(Table("lines", Format(Lines)), "lines")


class Store(MemoryState):
    """A store that can be gone after so many writes, and refuses what is too large as all do."""

    left = 10_000

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Put, while there are writes left."""
        if self.left == 0:
            raise Unavailable("gone")
        self.left -= 1
        return super().put(key, value, if_version=if_version, ttl_s=ttl_s)


def many(begin: int, count: int = 4000) -> Lines:
    """More lines than three records hold."""
    return Lines(lines=tuple(f"{n:0256d}" for n in range(begin, begin + count)))


def test_a_value_comes_back_whole_whatever_its_size() -> None:
    """Small and large values lie side by side, in order, none of their records over the limit."""
    state = Store(VirtualClock(EPOCH))
    values = {"c/a": many(0, 3), "c/b": many(0), "c/b1": many(7, 1), "c/c": many(5000)}
    for name, value in values.items():
        LINES.write(state, name, value)
    found = {entry.name: entry.value for entry in LINES.scan(state, "c/")}
    assert {name: value.lines for name, value in found.items()} == {name: value.lines for name, value in values.items()}
    assert max(len(stored.value) for _, stored in state.scan("").items) <= LARGEST
    LINES.delete(state, "c/b")
    LINES.delete(state, "c/c")
    assert [key for key, _ in state.scan("").items] == ["lines/c/a", "lines/c/b1"]


@pytest.mark.parametrize("writes", range(8))
def test_a_rewrite_cut_short_anywhere_leaves_the_old_value_or_the_new(writes: int) -> None:
    """Readers never see some of both, and the next write makes it whole."""
    state = Store(VirtualClock(EPOCH))
    old, new = many(0), many(100)
    LINES.write(state, "c/a", old)
    state.left = writes
    try:
        LINES.write(state, "c/a", new)
    except Unavailable:
        ((_, _, found),) = LINES.scan(state, "c/")
        assert found.lines == old.lines
    state.left = 10_000
    LINES.write(state, "c/a", new)
    ((_, _, found),) = LINES.scan(state, "c/")
    assert found.lines == new.lines


def test_a_value_that_misses_a_record_does_not_come() -> None:
    """What is not whole is not told as if it were."""
    state = Store(VirtualClock(EPOCH))
    LINES.write(state, "c/a", many(0))
    LINES.write(state, "c/b", many(0, 1))
    state.delete(state.scan("lines/c/a").items[-1][0])
    assert [entry.name for entry in LINES.scan(state, "c/")] == ["c/b"]


def test_what_is_there_already_is_not_written_again() -> None:
    """The same small value costs one read."""
    state = Store(VirtualClock(EPOCH))
    LINES.write(state, "c/a", many(0, 1))
    before = state.get("lines/c/a")
    LINES.write(state, "c/a", many(0, 1))
    assert state.get("lines/c/a") == before
