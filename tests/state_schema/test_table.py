"""A table: typed values over a State, by compare-and-set."""

import msgspec
import pytest

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import Conflict, Corrupt
from pilotlight.ports.state import ABSENT, Page
from pilotlight.state_schema.table import Format, Table, pages
from pilotlight.units import EPOCH
from pilotlight.world.world_clock import VirtualClock


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """A number."""

    n: int


COUNT = Table("count", Format(Count), 60.0)


@pytest.fixture
def state(clock: VirtualClock) -> MemoryState:
    """An empty store."""
    return MemoryState(clock)


def test_a_value_comes_back_with_its_name_and_version(state: MemoryState) -> None:
    """What is put under a name lies under the family's key and is got as it was."""
    version = COUNT.put(state, "c/a", Count(n=1))
    assert COUNT.get(state, "c/a") == ("c/a", version, Count(n=1))
    assert state.get("count/c/a") == (b'{"schema":1,"n":1}', version)
    assert COUNT.get(state, "c/b") is None


def test_a_put_over_another_version_conflicts(state: MemoryState) -> None:
    """The version goes through to the store, which lets one of two writers through."""
    first = COUNT.put(state, "a", Count(n=1), if_version=ABSENT)
    COUNT.put(state, "a", Count(n=2), if_version=first)
    with pytest.raises(Conflict):
        COUNT.put(state, "a", Count(n=3), if_version=first)
    with pytest.raises(Conflict):
        COUNT.delete(state, "a", if_version=first)
    COUNT.delete(state, "a")
    assert COUNT.get(state, "a") is None


def test_a_record_is_kept_for_its_familys_time_or_its_own(state: MemoryState, clock: VirtualClock) -> None:
    """The family says how long; a put may say otherwise for one record."""
    COUNT.put(state, "family", Count(n=1))
    COUNT.put(state, "longer", Count(n=1), ttl_s=120)
    clock.advance(60)
    assert [entry.name for entry in COUNT.scan(state)] == ["longer"]


def test_a_scan_gives_the_entries_of_a_cluster_in_order(state: MemoryState) -> None:
    """Only names that begin so come, and from the first that is greater than ``after``."""
    for name in ("c/b", "c/a", "cc/a", "c/c"):
        COUNT.put(state, name, Count(n=1))
    assert [entry.name for entry in COUNT.scan(state, "c/")] == ["c/a", "c/b", "c/c"]
    assert [entry.name for entry in COUNT.scan(state, "c/", after="c/a")] == ["c/b", "c/c"]


def test_every_page_of_a_scan_is_read() -> None:
    """What does not come at once is asked for, from the last key on."""

    class Small(MemoryState):
        def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
            return super().scan(prefix, after=after, limit=3)

    state = Small(VirtualClock(EPOCH))
    for n in range(10):
        COUNT.put(state, f"{n}", Count(n=n))
    assert [entry.value.n for entry in COUNT.scan(state)] == list(range(10))
    assert [key for key, _ in pages(state, "count/", "count/6")] == ["count/7", "count/8", "count/9"]


def test_a_record_that_cannot_be_read_is_named(state: MemoryState) -> None:
    """A family reads no record of another shape, and says which."""
    state.put("count/a", b'{"schema":1,"m":1}')
    with pytest.raises(Corrupt, match="count/a"):
        COUNT.get(state, "a")
    with pytest.raises(Corrupt, match="count/a"):
        list(COUNT.scan(state))


def test_a_change_starts_again_from_what_was_written_meanwhile(state: MemoryState) -> None:
    """A loser of a compare-and-set loses nothing: both changes are there in the end."""
    others = [Count(n=10)]

    def add(was: Count | None) -> Count:
        if others:
            COUNT.put(state, "a", others.pop())
        return Count(n=was.n + 1 if was else 1)

    assert COUNT.change(state, "a", add) == Count(n=11)


def test_a_change_that_changes_nothing_writes_nothing(state: MemoryState) -> None:
    """The version stays, so nobody else has to start again for it."""
    version = COUNT.put(state, "a", Count(n=1))
    COUNT.change(state, "a", lambda was: was or Count(n=0))
    found = COUNT.get(state, "a")
    assert found is not None
    assert found.version == version
