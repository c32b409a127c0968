"""State in one SQLite file, safe between threads and processes."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from pilotlight.adapters.state import new_version, too_large
from pilotlight.errors import BadInput, Conflict, StoreFault, Unavailable
from pilotlight.ports.state import ABSENT, LARGEST, Clock, Page, Stored
from pilotlight.units import Seconds, clock_seconds, one_line

# WAL with NORMAL loses at most the last commits on a power cut, never the file; a busy writer is waited for; seldom
# checkpoints (every 16 MB) write a page that changed often only once.
PRAGMAS: tuple[str, ...] = (
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "busy_timeout = 5000",
    "wal_autocheckpoint = 4000",
)

_CREATE = """CREATE TABLE IF NOT EXISTS state
    (key TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL, expires REAL)"""
_COLUMNS = """SELECT made.name, has.name FROM sqlite_master made, pragma_table_info(made.name) has
    WHERE made.type = 'table'"""
_LIVE = "(expires IS NULL OR expires > :now)"
_GET = f"SELECT value, version FROM state WHERE key = :key AND {_LIVE}"
_PUT = """INSERT INTO state VALUES (:key, :value, :version, :expires) ON CONFLICT (key)
    DO UPDATE SET value = excluded.value, version = excluded.version, expires = excluded.expires"""
_PUT_ABSENT = f"{_PUT} WHERE expires <= :now"
_PUT_OVER = f"""UPDATE state SET value = :value, version = :version, expires = :expires
    WHERE key = :key AND version = :over AND {_LIVE}"""
_DELETE = "DELETE FROM state WHERE key = :key"
_DELETE_OVER = f"{_DELETE} AND version = :over AND {_LIVE}"
_SCAN = f"""SELECT key, value, version FROM state
    WHERE key >= :first AND key > :after AND key < :end AND {_LIVE} ORDER BY key LIMIT :limit"""
_PURGE = "DELETE FROM state WHERE expires <= :now"


class SqliteState:
    """One connection a thread and process; each operation is one statement, so it is atomic by itself.

    Its time is the host's, on which all its workers are; or that of a ``clock``, as a world's.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self._clock = clock
        self._mine = threading.local()
        self._made = False
        with suppress(Unavailable):  # Whoever asks it is told: work is saved without a store that cannot be opened.
            self._make()

    def _make(self) -> None:
        with self._explained():
            if self.path.is_dir():
                raise BadInput(f"state {self.path}: is a directory; name a file: sqlite:{self.path / 'state.db'}")
            refuse_strange(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _begin(self.path)
            self._connection().execute(_CREATE)
            self._connection().execute(_PURGE, {"now": self._now()})
        self._made = True

    def now(self) -> datetime:
        return self._clock.now() if self._clock is not None else datetime.now(UTC)

    def get(self, key: str) -> Stored | None:
        with self._asked():
            row = self._connection().execute(_GET, {"key": key, "now": self._now()}).fetchone()
        return _read(key, row[0], row[1]) if row else None

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        if len(value) > LARGEST:
            raise too_large(key, value)
        now = self._now()
        version = new_version()
        statement = _PUT if if_version is None else _PUT_ABSENT if if_version == ABSENT else _PUT_OVER
        row = {
            "key": key,
            "value": value,
            "version": version,
            "expires": None if ttl_s is None else now + ttl_s,
            "over": if_version,
            "now": now,
        }
        self._change(key, statement, row, must=if_version is not None)
        return version

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        statement = _DELETE if if_version is None else _DELETE_OVER
        self._change(key, statement, {"key": key, "over": if_version, "now": self._now()}, must=if_version is not None)

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        bounds = {"first": prefix, "after": after, "end": _end_of(prefix), "now": self._now(), "limit": limit + 1}
        with self._asked():
            rows = self._connection().execute(_SCAN, bounds).fetchall()
        items = [(key, _read(key, value, version)) for key, value, version in rows[:limit]]
        return Page(items, items[-1][0] if len(rows) > limit else "")

    def last_look(self, cluster: str) -> datetime | None:
        """By the time of a file beside the state's: a copy of that one, put back, leaves it as it is."""
        try:
            return datetime.fromtimestamp(self._watch(cluster).stat().st_mtime, UTC)
        except (OSError, ValueError, OverflowError):
            return None

    def note_look(self, cluster: str, at: datetime) -> None:
        with suppress(OSError):
            _begin(self._watch(cluster))
            os.utime(self._watch(cluster), (at.timestamp(), at.timestamp()))

    def _watch(self, cluster: str) -> Path:
        """Named so that who moves ``state.db*`` away leaves it: a new, empty state is known by it to have lost one."""
        return self.path.with_name(f"last-look-{quote(cluster, safe='')}-{self.path.name}")

    def _change(self, key: str, statement: str, row: dict[str, object], *, must: bool) -> None:
        with self._asked():
            changed = self._connection().execute(statement, row).rowcount
        if must and changed != 1:
            raise Conflict(f"state {key}: another version is there")

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection; a forked child opens its own."""
        mine = self._mine
        if getattr(mine, "pid", None) != os.getpid():
            mine.connection = sqlite3.connect(self.path, isolation_level=None, timeout=5)
            for pragma in PRAGMAS:
                mine.connection.execute(f"PRAGMA {pragma}")
            mine.pid = os.getpid()
        connection: sqlite3.Connection = mine.connection
        return connection

    def _now(self) -> Seconds:
        return clock_seconds(self.now())

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """One operation, on a file that was made before or is made now."""
        if not self._made:
            self._make()
        with self._explained():
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise Unavailable(
                f"state file {self.path}: {error}; check that the disk has room and is writable"
            ) from None
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._mine.pid = None  # A file that is mended is opened anew.
            raise StoreFault(
                f"state file {self.path}: {error}; restore it from a backup, or move it, its -wal and its -shm away to "
                "start with an empty one. Leave last-look-*: hard budgets then count what was spent as unknown"
            ) from None
        except OSError as error:
            raise Unavailable(
                f"state file {self.path}: {error.strerror}; choose another with PILOTLIGHT_STATE"
            ) from None


def refuse_strange(path: Path) -> None:
    """Raises ``BadInput`` for another program's database. The file is neither locked nor written; whatever cannot be
    read so is left to who opens it.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            tables: dict[str, set[str]] = {}
            for table, column in connection.execute(_COLUMNS):
                tables.setdefault(table, set()).add(column)
    except (sqlite3.Error, UnicodeDecodeError):
        return
    if tables and tables.get("state", set()) != {"key", "value", "version", "expires"}:
        raise BadInput(
            f"state {path}: is another program's database (table {one_line(min(tables), 40)}), no Pilotlight state; "
            "name another file by --state sqlite:PATH"
        )


def _read(key: str, value: object, version: object) -> Stored:
    """A row as it was written. One of a page that was overwritten may hold anything."""
    if not isinstance(value, bytes) or not isinstance(version, int):
        raise StoreFault(
            f"state {key}: its row holds {type(value).__name__} and {type(version).__name__}; restore a backup"
        )
    return Stored(value, version)


def _end_of(prefix: str) -> str:
    return prefix + chr(0x10FFFF)


def _begin(path: Path) -> None:
    """Make the file, its owner's alone, where there is none; what SQLite puts beside it becomes so too.

    One that is there is somebody's: it keeps its rights. Nor is it opened, for to close it again would end the locks
    that this process has on it.
    """
    with suppress(FileExistsError):
        os.close(os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
