"""What only the SQLite state has: a file that threads and processes share, and that can be broken."""

import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import BadInput, Conflict, StoreFault, Unavailable
from pilotlight.ports.state import ABSENT


def _count_up(path: Path, times: int) -> None:
    state = SqliteState(path, SystemClock())
    for _ in range(times):
        while True:
            seen = state.get("n")
            try:
                state.put(
                    "n", str(int(seen.value) + 1 if seen else 1).encode(), if_version=seen.version if seen else ABSENT
                )
            except Conflict:
                continue
            break


def test_another_program_s_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """By one of its tables; nothing is written into it or beside it."""
    there = tmp_path / "app.db"
    with closing(sqlite3.connect(there)) as other:
        other.execute("CREATE TABLE users (name)")
    was = there.read_bytes()
    with pytest.raises(BadInput, match=r"is another program's database \(table users\), no Pilotlight state"):
        SqliteState(there, SystemClock())
    assert (there.read_bytes(), [*tmp_path.iterdir()]) == (was, [there])


def test_processes_lose_no_update(tmp_path: Path) -> None:
    """Two processes and two threads that count by compare-and-set reach the sum of their counts."""
    path = tmp_path / "state.db"
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_count_up, args=(path, 50)) for _ in range(2)]
    for process in processes:
        process.start()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: _count_up(path, 50), range(2)))
    for process in processes:
        process.join()
    stored = SqliteState(path, SystemClock()).get("n")
    assert stored is not None
    assert stored.value == b"200"


def test_a_store_is_shared_between_threads(tmp_path: Path) -> None:
    """One object serves many threads, each on its own connection."""
    state = SqliteState(tmp_path / "state.db", SystemClock())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: state.put(f"k/{i}", b""), range(100)))
    assert len(state.scan("k/").items) == 100


def test_what_was_put_survives_the_process(tmp_path: Path) -> None:
    """A new object on the same file gets the same value and version."""
    version = SqliteState(tmp_path / "s.db", SystemClock()).put("k", b"1")
    assert SqliteState(tmp_path / "s.db", SystemClock()).get("k") == (b"1", version)


def test_every_connection_waits_for_a_busy_writer(tmp_path: Path) -> None:
    """The pragmas hold on the connections of later threads too: a write waits for another's transaction."""
    state = SqliteState(tmp_path / "s.db", SystemClock())
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        write = pool.submit(state.put, "k", b"1")
        assert not write.done()
        other.execute("COMMIT")
        assert write.result()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    """A file of something else is the store's fault once it is asked, in one line with its path and what to do; once
    it is moved away the same state works."""
    path = tmp_path / "state.db"
    path.write_bytes(b"this is not a database" * 100)
    state = SqliteState(path, SystemClock())
    with pytest.raises(StoreFault, match=r"state\.db: .* away to start .*Leave last-look-\*") as caught:
        state.get("k")
    assert "\n" not in str(caught.value)
    path.unlink()
    state.put("k", b"1")
    assert state.get("k") is not None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file where the folder should be is Unavailable and names the setting."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="PILOTLIGHT_STATE"):
        SqliteState(tmp_path / "file" / "state.db", SystemClock()).get("k")


def test_a_read_only_database_is_unavailable(tmp_path: Path) -> None:
    """Where nothing can be written, a put says so and a get still works."""
    state = SqliteState(tmp_path / "s.db", SystemClock())
    state.put("k", b"1")
    state._connection().execute("PRAGMA query_only = ON")
    with pytest.raises(Unavailable, match="writable"):
        state.put("k", b"2")
    assert state.get("k") is not None


def test_a_full_disk_is_unavailable(tmp_path: Path) -> None:
    """A database that may not grow says so, and keeps what it holds."""
    state = SqliteState(tmp_path / "s.db", SystemClock())
    state.put("k", b"1")
    pages = state._connection().execute("PRAGMA page_count").fetchone()[0]
    state._connection().execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(Unavailable, match="full"):
        state.put("big", b"x" * 100_000)
    assert state.get("k") is not None


def test_only_its_owner_reads_the_state(tmp_path: Path) -> None:
    """The file is made 0600, what SQLite puts beside it too, also where a link leads to it."""
    (tmp_path / "link.db").symlink_to(tmp_path / "led-to.db")
    for name in ("new.db", "link.db"):
        SqliteState(tmp_path / name, SystemClock()).put("k", b"1")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert {"new.db", "new.db-wal", "led-to.db"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("text", [None, b"", b"notes\n"], ids=["folder", "empty file", "no database"])
def test_what_was_there_keeps_its_rights(tmp_path: Path, text: bytes | None) -> None:
    """A folder or file that we did not make is its owner's to share; a folder is refused by its name."""
    there = tmp_path / "there"
    there.mkdir() if text is None else there.write_bytes(text)
    there.chmod(0o755)
    refused: dict[bytes | None, AbstractContextManager[object]] = {
        None: pytest.raises(BadInput, match="is a directory; name a file"),
        b"": nullcontext(),
        b"notes\n": pytest.raises(StoreFault, match="not a database"),
    }
    with refused[text]:
        SqliteState(there, SystemClock()).scan("")
    assert there.stat().st_mode & 0o777 == 0o755
    assert text is None or text == b"" or there.read_bytes() == text
