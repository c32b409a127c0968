"""Records that lie together: each is changed as if it lay alone, and a look at many reads and writes a few."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.adapters.state.memory import MemoryState, RoomyState
from pilotlight.errors import Conflict, Corrupt
from pilotlight.ports.state import ABSENT, LARGEST
from pilotlight.state_schema.table import PLACES, PLAIN, Format, Packed, Part, Table, plain
from pilotlight.units import EPOCH
from pilotlight.world.world_clock import VirtualClock


class Lamp(msgspec.Struct, frozen=True, kw_only=True):
    """What lies there."""

    gas: float


class Lamps(Part[Lamp], frozen=True, kw_only=True):
    """Lamps by name."""


LAMP = Packed(Table("lamp", Format(Lamps, squeezed=True)), Lamps)
NAMES, LAMPS = st.sampled_from([f"n{n}" for n in range(40)]), st.none() | st.builds(Lamp, gas=st.integers(0, 2))


def store() -> MemoryState:
    """An empty one."""
    return MemoryState(VirtualClock(EPOCH))


@given(st.lists(st.dictionaries(NAMES, st.tuples(LAMPS, LAMPS), max_size=6), max_size=12))
def test_each_is_changed_as_if_it_lay_alone(steps: list[dict[str, tuple[Lamp | None, Lamp | None]]]) -> None:
    """A value takes the place of what its writer read, and of nothing else, whatever lies beside it."""
    state, model = store(), dict[str, Lamp]()
    for changes in steps:
        lost = LAMP.change(state, "c", changes)
        assert lost == {name for name, (over, _) in changes.items() if model.get(name) != over}
        made = {name: value for name, (_, value) in changes.items() if name not in lost}
        model = {name: value for name, value in {**model, **made}.items() if value is not None}
        assert {kept.name: kept.value for kept in LAMP.scan(state, "c/")} == {f"c/{n}": v for n, v in model.items()}
        assert {n: kept.value for n in model if (kept := LAMP.get(state, f"c/{n}"))} == model
    assert bool(state.scan("lamp/").items) == bool(model)


def test_a_late_writer_changes_only_what_nobody_changed_meanwhile() -> None:
    """Another's write beside it costs it a second try; another's write of the same value is the other's."""
    state = store()
    lamps = {f"n{n}": Lamp(gas=0) for n in range(3 * PLACES)}
    LAMP.change(state, "c", {name: (None, lamp) for name, lamp in lamps.items()})
    LAMP.put(state, "c/n7", Lamp(gas=1), over=Lamp(gas=0))
    assert LAMP.change(state, "c", {name: (lamp, None) for name, lamp in lamps.items()}) == {"n7"}
    with pytest.raises(Conflict, match="lamp/c/n7"):
        LAMP.put(state, "c/n7", None, over=Lamp(gas=0))
    assert [kept.name for kept in LAMP.scan(state)] == ["c/n7"]


class Counting(MemoryState):
    """A store that counts its calls."""

    calls = 0

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000):  # type: ignore[no-untyped-def]
        """Count, and scan."""
        self.calls += 1
        return super().scan(prefix, after=after, limit=limit)

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: float | None = None) -> int:
        """Count, and put."""
        self.calls += 1
        return super().put(key, value, if_version=if_version, ttl_s=ttl_s)


@pytest.mark.parametrize("many", [200, 2000])
def test_many_are_changed_by_a_few_calls(many: int) -> None:
    """A scan and a write a place, whatever their number."""
    state = Counting(VirtualClock(EPOCH))
    assert LAMP.change(state, "c", {f"n{n}": (None, Lamp(gas=n)) for n in range(many)}) == set()
    assert state.calls == 1 + PLACES


def test_a_long_record_is_squeezed_and_reads_as_a_short_one() -> None:
    """More than 1 KB is a zlib stream of the same JSON; one that is broken is refused with its key."""
    short, long = (Lamps(items={f"n{n}": Lamp(gas=n) for n in range(size)}) for size in (9, 900))
    read = Format(Lamps, squeezed=True)
    assert read.write(short)[:1] == b"{"
    record = read.write(long)
    assert len(record) < len(plain(record))
    assert len(plain(record)) > PLAIN
    assert Format(Lamps).read("lamp/c/x", record) == Format(Lamps).read("lamp/c/y", plain(record)) == long
    with pytest.raises(Corrupt, match="lamp/c/z"):
        read.read("lamp/c/z", record[:40])
    assert LAMP.table.put(store(), "c/00", long, if_version=ABSENT)


def test_a_roomy_store_takes_any_size_and_squeezes_nothing() -> None:
    """A replay's store in this process keeps a record that others refuse, as plain JSON, and reads it back."""
    vast = Lamps(items={f"n{n}": Lamp(gas=n) for n in range(LARGEST // 10)})
    roomy = RoomyState(VirtualClock(EPOCH))
    LAMP.table.put(roomy, "c/00", vast, if_version=ABSENT)
    stored = roomy.get("lamp/c/00")
    assert stored is not None
    assert stored.value[:1] == b"{"
    assert len(stored.value) > LARGEST
    assert Format(Lamps).read("lamp/c/00", stored.value) == vast
