"""The contract of the State port, over every backend."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.adapters.state.firestore import FirestoreState
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import Conflict, StoreFault
from pilotlight.ports.state import ABSENT, LARGEST, Clock, State
from pilotlight.tools.install.state_store import create_table
from pilotlight.units import EPOCH
from pilotlight.world.world_clock import VirtualClock

Make = Callable[[Clock], State]


def _memory(request: pytest.FixtureRequest) -> Make:
    return MemoryState


def _sqlite(request: pytest.FixtureRequest) -> Make:
    folder = request.getfixturevalue("tmp_path_factory").mktemp("state")
    return lambda clock: SqliteState(folder / f"{uuid4()}.db", clock)


def _dynamodb(request: pytest.FixtureRequest) -> Make:
    endpoint = request.getfixturevalue("dynamodb_server")

    def make(clock: Clock) -> State:
        table = f"state-{uuid4()}"
        state = DynamoDBState(table, clock, endpoint=endpoint)
        create_table(state.client, table)
        return state

    return make


def _firestore(request: pytest.FixtureRequest) -> Make:
    host = request.getfixturevalue("firestore_emulator")
    return lambda clock: FirestoreState(
        "demo", clock, database="(default)", collection=f"state-{uuid4()}", emulator=host
    )


BACKENDS = {"memory": _memory, "sqlite": _sqlite, "dynamodb": _dynamodb, "firestore": _firestore}
REMOTE = ("dynamodb", "firestore")


@pytest.fixture(params=BACKENDS)
def make(request: pytest.FixtureRequest) -> Make:
    """What makes an empty store, of each backend."""
    return BACKENDS[request.param](request)


@pytest.fixture
def state(make: Make, clock: VirtualClock) -> State:
    """An empty store of each backend."""
    return make(clock)


def test_a_store_on_a_worlds_clock_tells_its_time(state: State, clock: VirtualClock) -> None:
    """A clock that was given is the store's time, also after it moved."""
    state.put("k", b"1")
    clock.advance(60)
    assert state.now() == clock.now()


def test_a_value_comes_back_with_its_version(state: State) -> None:
    """What was put is got, under the version that put returned."""
    version = state.put("a/b", b"\x00one")
    assert state.get("a/b") == (b"\x00one", version)


def test_an_unknown_key_is_absent(state: State) -> None:
    """A key never written is None."""
    assert state.get("a") is None


def test_a_put_without_a_version_writes_over(state: State) -> None:
    """The last of two plain puts stays, under a new version."""
    first, second = state.put("k", b"1"), state.put("k", b"2")
    assert first != second
    assert state.get("k") == (b"2", second)


def test_only_the_first_put_if_absent_wins(state: State) -> None:
    """A second put-if-absent raises Conflict and changes nothing."""
    version = state.put("k", b"1", if_version=ABSENT)
    with pytest.raises(Conflict, match="k"):
        state.put("k", b"2", if_version=ABSENT)
    assert state.get("k") == (b"1", version)


def test_a_put_over_a_version_needs_that_version(state: State) -> None:
    """Compare-and-set goes through once; whoever read before it loses."""
    seen = state.put("k", b"1")
    state.put("k", b"2", if_version=seen)
    with pytest.raises(Conflict):
        state.put("k", b"3", if_version=seen)


@pytest.mark.parametrize("seen", ["absent", "a version"])
def test_of_many_writers_over_one_version_exactly_one_wins(state: State, seen: str) -> None:
    """A store whose put ignored ``if_version`` would let all of them through."""
    over = state.put("cap/c/all", b"0") if seen == "a version" else ABSENT

    def write(n: int) -> int | None:
        try:
            return state.put("cap/c/all", str(n).encode(), if_version=over)
        except Conflict:
            return None

    with ThreadPoolExecutor(4) as pool:
        won = [(n, version) for n, version in enumerate(pool.map(write, range(8))) if version is not None]
    assert len(won) == 1
    assert state.get("cap/c/all") == (str(won[0][0]).encode(), won[0][1])


def test_a_put_over_a_version_of_an_absent_key_conflicts(state: State) -> None:
    """A version names something that was there: an absent key has none."""
    with pytest.raises(Conflict):
        state.put("k", b"1", if_version=7)


def test_a_key_made_again_has_a_new_version(state: State) -> None:
    """Who read a key before it was deleted and made again loses."""
    seen = state.put("k", b"1", if_version=ABSENT)
    state.delete("k")
    state.put("k", b"1", if_version=ABSENT)
    with pytest.raises(Conflict):
        state.put("k", b"2", if_version=seen)


def test_deleting_an_absent_key_is_no_error(state: State) -> None:
    """A plain delete can be repeated."""
    state.put("k", b"1")
    state.delete("k")
    state.delete("k")
    assert state.get("k") is None


def test_a_delete_over_a_version_needs_that_version(state: State) -> None:
    """A conditional delete of a newer value raises Conflict and keeps it; of an absent key it raises too."""
    old = state.put("k", b"1")
    new = state.put("k", b"2")
    with pytest.raises(Conflict):
        state.delete("k", if_version=old)
    state.delete("k", if_version=new)
    with pytest.raises(Conflict):
        state.delete("k", if_version=new)


def test_an_expired_key_is_absent_to_every_operation(state: State, clock: VirtualClock) -> None:
    """From its time on a key is not got, not scanned, not compared, and free for put-if-absent."""
    version = state.put("k", b"1", ttl_s=60)
    clock.advance(59.9)
    assert state.get("k") == (b"1", version)
    clock.advance(60)
    assert state.get("k") is None
    assert state.scan("") == ([], "")
    with pytest.raises(Conflict):
        state.put("k", b"2", if_version=version)
    with pytest.raises(Conflict):
        state.delete("k", if_version=version)
    state.put("k", b"3", if_version=ABSENT)
    assert state.get("k") is not None


def test_a_put_without_a_time_keeps_for_ever(state: State, clock: VirtualClock) -> None:
    """Writing over a key that would expire, with no TTL, makes it stay."""
    state.put("k", b"1", ttl_s=1)
    state.put("k", b"2")
    clock.advance(10_000_000)
    assert state.get("k") is not None


def test_a_scan_gives_the_keys_of_a_prefix_in_order(state: State) -> None:
    """Only keys of the prefix come, sorted, with values and versions."""
    versions = {key: state.put(key, key.encode()) for key in ("b/2", "a/1", "b/1", "b", "c", "b/é")}
    page = state.scan("b/")
    assert [(key, stored) for key, stored in page.items] == [
        (key, (key.encode(), versions[key])) for key in ("b/1", "b/2", "b/é")
    ]
    assert page.next == ""


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_pages_of_a_scan_give_every_key_once(state: State, limit: int) -> None:
    """Going on after each page's last key gives all keys, and no page is larger than asked for."""
    keys = [f"p/{i}" for i in range(7)]
    for key in [*keys, "o", "q"]:
        state.put(key, b"")
    seen: list[str] = []
    after = ""
    while True:
        page = state.scan("p/", after=after, limit=limit)
        assert len(page.items) <= limit
        seen += [key for key, _ in page.items]
        if not page.next:
            break
        after = page.next
    assert seen == keys


def test_a_value_over_the_limit_is_refused_by_name(state: State) -> None:
    """300 KB go in; a byte more is refused with the key's name, and nothing changes."""
    state.put("big", b"x" * LARGEST)
    with pytest.raises(StoreFault, match="big"):
        state.put("big", b"y" * (LARGEST + 1))
    assert state.get("big") is not None


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "absent", "over", "delete", "wait"]),
        st.sampled_from(["a", "a/b", "b", "ab"]),
        st.binary(max_size=3),
        st.sampled_from([None, 5.0, 20.0]),
    ),
    max_size=30,
)


@pytest.mark.parametrize("backend", BACKENDS)
def test_any_run_of_operations_behaves_as_a_dictionary(backend: str, request: pytest.FixtureRequest) -> None:
    """Whatever is done, the store holds what a dictionary with expiry times would."""
    make = BACKENDS[backend](request)

    @given(operations=OPERATIONS)
    @settings(max_examples=8 if backend in REMOTE else 40, deadline=None)
    def holds(operations: list[tuple[str, str, bytes, float | None]]) -> None:
        _behaves(make, operations)

    holds()


def _behaves(make: Make, operations: list[tuple[str, str, bytes, float | None]]) -> None:
    clock = VirtualClock(EPOCH)
    state = make(clock)
    model: dict[str, tuple[bytes, int, float]] = {}
    now = 0.0
    for what, key, value, ttl_s in operations:
        model = {k: entry for k, entry in model.items() if entry[2] > now}
        ends = float("inf") if ttl_s is None else now + ttl_s
        expected = {"absent": ABSENT, "over": model[key][1] if key in model else 1}.get(what)
        if what == "wait":
            now += 5
            clock.advance(now)
        elif what == "delete":
            state.delete(key)
            model.pop(key, None)
        elif (what == "absent" and key in model) or (what == "over" and key not in model):
            with pytest.raises(Conflict):
                state.put(key, value, if_version=expected, ttl_s=ttl_s)
        else:
            model[key] = (value, state.put(key, value, if_version=expected, ttl_s=ttl_s), ends)
    live = sorted((k, (v, version)) for k, (v, version, ends) in model.items() if ends > now)
    assert list(state.scan("").items) == live


def test_parallel_compare_and_sets_lose_nothing(state: State) -> None:
    """Of 8 threads that each add 1 to a counter by compare-and-set, every addition is in the end."""
    state.put("counter", b"0")

    def add(times: int) -> None:
        while times:
            seen = state.get("counter")
            assert seen is not None
            try:
                state.put("counter", str(int(seen.value) + 1).encode(), if_version=seen.version)
            except Conflict:
                continue
            times -= 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, [3] * 8))
    found = state.get("counter")
    assert found is not None
    assert found.value == b"24"


def test_one_of_many_parallel_claims_wins(state: State) -> None:
    """Of 8 threads that put the same absent key, exactly one goes through."""

    def claim(n: int) -> bool:
        try:
            state.put("claim", str(n).encode(), if_version=ABSENT)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(claim, range(8))) == 1


def test_keys_sort_by_their_characters(state: State) -> None:
    """Characters next to the slash keep their order: prefixes stay together whatever a backend forbids in ids."""
    keys = ["a", "a+1", "a-b", "a.0", "a.b/c", "a/", "a/.", "a/b", "a0", "a~", "aé"]
    for key in reversed(keys):
        state.put(key, b"")
    assert [key for key, _ in state.scan("").items] == keys
    assert [key for key, _ in state.scan("a/").items] == ["a/", "a/.", "a/b"]
    assert [key for key, _ in state.scan("a/", after="a/.").items] == ["a/b"]
    assert [key for key, _ in state.scan("a/", after="a/").items] == ["a/.", "a/b"]
    assert state.scan("a/", after="b").items == []
    assert [key for key, _ in state.scan("a/", after="A").items] == ["a/", "a/.", "a/b"]


def test_pages_go_on_over_what_expired(state: State, clock: VirtualClock) -> None:
    """A page is filled with live keys even where expired ones lie between, and large values do not shorten a scan."""
    for n in range(12):
        state.put(f"p/{n:02d}", b"x" * 200_000 if n % 3 == 0 else b"", ttl_s=5 if n % 2 else None)
    clock.advance(10)
    page = state.scan("p/", limit=4)
    assert [key for key, _ in page.items] == ["p/00", "p/02", "p/04", "p/06"]
    assert [key for key, _ in state.scan("p/", after=page.next, limit=4).items] == ["p/08", "p/10"]
