"""A FOCUS export (1.0 to 1.2, CSV or Parquet) as a bill, read by DuckDB. ``BilledCost`` is what sums.

What real exports do is taken as it is: ``NULL`` as text, times without a zone (UTC), columns more or fewer, tags as
JSON or as a map, and the whole written again beside the old. FOCUS: https://focus.finops.org/focus-specification
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from pilotlight.adapters.bills.exports import Files, local_files, version
from pilotlight.adapters.bills.focus_query import (
    CURRENCY,
    NAMES,
    VERSION,
    node_query,
    query,
    quote_name,
    reach_query,
    superseded_days,
)
from pilotlight.adapters.object_store import Objects
from pilotlight.decide.money.bill_scope import Line, Rules, scope_bill
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import Bill
from pilotlight.facts.workload import Finding
from pilotlight.units import cents, count_of, shorten_figure

if TYPE_CHECKING:
    import duckdb

    from pilotlight.decide.money.invoice_proof import NodeBill, NodeCharge

NEEDED = ("BilledCost", "ChargePeriodStart", "ChargePeriodEnd")
MEMORY = "256MB"
_ONE_AT_A_TIME = Lock()
"""Several clusters of one process read one after another: memory is what one of them takes."""
SOURCE = "focus"
"""Wherever it lies: the same days under another address are not billed twice."""


class FocusBills:
    """The Bills port of an export; ``objects`` reads one that lies in a cloud's bucket."""

    def __init__(self, uri: str, rules: Rules, objects: Objects | None = None) -> None:
        self._uri, self._rules, self._objects = uri, rules, objects or Objects()

    def version(self) -> str:
        """A word for the files that lie there, and the rules that they are read by."""
        return f"{version(self._uri, self._objects)} {blake2b(repr(self._rules).encode(), digest_size=8).hexdigest()}"

    def read(self, start: datetime, end: datetime) -> Bill:
        """The cluster's rows of the period by day, team, pool and service. A file that is no export is a finding.

        A row whose charge period is longer than a day, as a month's fee, belongs to the day on which it begins.
        """
        with self._opened() as (db, files):
            import duckdb

            try:
                columns = _open(db, files)
                missing = [name for name in NEEDED if name not in columns]
                if missing:
                    return _unread(f"columns are missing: {', '.join(missing)}")
                lines = self._lines(db, columns, start, end, several=len(files.versions) > 1)
                twice = _told_twice(db) if len(files.versions) > 1 else ()
            except duckdb.Error as error:
                return _unread(_why_unread(error, files))
        bill = scope_bill(SOURCE, lines, self._rules, end, dropped=files.dropped)
        return msgspec.structs.replace(bill, findings=(*bill.findings, *twice))

    def read_nodes(self, start: datetime, end: datetime) -> "NodeBill":
        """Charges of machines, of the whole days of a period that the export reaches. Raises ``BadInput``."""
        from pilotlight.decide.money.invoice_proof import NodeBill

        with self._opened() as (db, files):
            import duckdb

            try:
                columns = _open(db, files)
                if missing := [name for name in (*NEEDED, "ResourceId") if name not in columns]:
                    raise BadInput(f"the bill lacks columns: {', '.join(missing)}; export them too")
                several = len(files.versions) > 1
                period = {"start": _plain(start), "end": _plain(end)}
                if several:
                    db.execute(superseded_days(columns), {"start": period["start"]})
                found = db.execute(reach_query(columns), period).fetchone()
                if found is None or found[0] is None:
                    return NodeBill((), None)
                period["end"] = datetime(found[0].year, found[0].month, found[0].day)  # noqa: DTZ001  As DuckDB has it.
                rows = db.execute(node_query(columns, several=several), period).fetchall()
            except duckdb.Error as error:
                raise BadInput(f"the bill {_why_unread(error, files)}; look at PILOTLIGHT_BILLS") from None
        if others := sorted({row[2] for row in rows} - {CURRENCY}):
            raise BadInput(f"the bill is in {', '.join(others)}: a proof needs one in dollars")
        charges = tuple(_charge(row, self._rules.pools) for row in rows)
        return NodeBill(charges, period["end"].replace(tzinfo=UTC))

    @contextmanager
    def _opened(self) -> "Iterator[tuple[duckdb.DuckDBPyConnection, Files]]":
        try:
            import duckdb
        except ImportError:
            raise BadInput("focus needs the package duckdb; run pip install 'pilotlight[bills]'") from None
        with (
            _ONE_AT_A_TIME,
            local_files(self._uri, self._objects) as files,
            duckdb.connect(
                config={"threads": 2, "memory_limit": MEMORY, "temp_directory": tempfile.gettempdir()}
            ) as db,
        ):
            db.execute("SET TimeZone='UTC'; SET preserve_insertion_order=false; SET enable_progress_bar=false")
            yield db, files

    def _lines(
        self, db: "duckdb.DuckDBPyConnection", columns: dict[str, str], start: datetime, end: datetime, *, several: bool
    ) -> list[Line]:
        period = {"start": _plain(start), "end": _plain(end)}
        if several:
            db.execute(superseded_days(columns), {"start": period["start"]})
        tags = tuple(self._rules.scope.tags) if self._rules.scope else ()
        found = (Line(*row) for row in db.execute(query(columns, tags, several=several), period).fetchall())
        return [line._replace(reach=line.reach and line.reach.replace(tzinfo=UTC)) for line in found]


def _open(db: "duckdb.DuckDBPyConnection", files: Files) -> dict[str, str]:
    """Make the table ``export`` of the files; its columns with their types. A row of several versions knows its own."""
    names = [str(file) for version in files.versions for file in version]
    several = len(files.versions) > 1
    packed = [name for name in names if name.endswith(".parquet")]
    plain = [name for name in names if name not in packed]
    if packed:
        _view(db, db.read_parquet(packed, union_by_name=True, filename=several), "packed", as_text=bool(plain))
    if plain:
        _view(db, _csv(db, plain, several=several), "plain")
    tables = [name for name, there in (("packed", packed), ("plain", plain)) if there]
    db.execute(f"CREATE VIEW export AS {' UNION ALL BY NAME '.join(f'FROM {name}' for name in tables)}")
    relation = db.table("export")
    columns = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    if several:
        db.execute("CREATE TEMP TABLE versions (file VARCHAR, n INTEGER)")
        rows = [[str(file), n] for n, version in enumerate(files.versions) for file in version]
        db.executemany("INSERT INTO versions VALUES (?, ?)", rows)
        db.execute("ALTER VIEW export RENAME TO files")
        db.execute(f"CREATE VIEW export AS SELECT files.*, n AS {VERSION} FROM files JOIN versions ON file = filename")
    return columns


def _told_twice(db: "duckdb.DuckDBPyConnection") -> tuple[Finding, ...]:
    """Days that files tell apart from each other, with both sums: of those written again, and of those that add."""
    asked = (
        "SELECT whole, count(DISTINCT day), sum(usd), sum(total) FROM dropped WHERE usd <> total GROUP BY 1 ORDER BY 1"
    )
    found = db.execute(asked).fetchall()
    counts = {True: "the newer counts", False: "both count, for they share few lines"}
    return tuple(
        _finding(
            f"two files tell {count_of(days, 'day')} apart: {cents(older)} in the older, {cents(newer)} in the newer; "
            f"{counts[whole]}"
        )
        for whole, days, older, newer in found
    )


def _view(
    db: "duckdb.DuckDBPyConnection", rows: "duckdb.DuckDBPyRelation", name: str, *, as_text: bool = False
) -> None:
    """Make a view with FOCUS's own names; ``as_text`` with tags as a CSV has them, to stand beside one."""
    asked = []
    for column, kind in zip(rows.columns, map(str, rows.types), strict=True):
        own = NAMES.get(column.replace("_", "").lower(), column)
        value = quote_name(column)
        if own == "Tags" and as_text and (kind.startswith("MAP") or kind.endswith("[]")):
            value = f"map_from_entries({value})" if kind.endswith("[]") else value
            value = f"CAST(to_json({value}) AS VARCHAR)"
        asked.append(f"{value} AS {quote_name(own)}")
    rows.project(", ".join(asked)).create_view(name)


def _csv(db: "duckdb.DuckDBPyConnection", names: Sequence[str], *, several: bool) -> "duckdb.DuckDBPyRelation":
    return db.read_csv(
        names,  # type: ignore[arg-type]
        header=True,
        all_varchar=True,
        na_values=["NULL", ""],
        quotechar='"',
        escapechar='"',
        comment="",  # Else a line that begins with # is dropped in silence.
        union_by_name=True,
        filename=several,
    )


def _plain(at: datetime) -> datetime:
    """A time in UTC without its zone, as DuckDB compares it."""
    return at.astimezone(UTC).replace(tzinfo=None)


def _charge(row: Sequence[Any], pools: Mapping[str, str]) -> "NodeCharge":
    from pilotlight.decide.money.invoice_proof import FirstCharge, NodeCharge

    instance, pool, _, category, timed, covered, unit_s, count, uncounted = row[:9]
    billed, listed, exact = (shorten_figure(usd, 9) for usd in row[9:12])
    effective = None if row[12] is None else shorten_figure(row[12], 9)
    used, begin, end, first = row[13:]
    hours, first_hours = (None if one is None or not unit_s else one * unit_s / 3600 for one in (used, first))
    at = None
    if begin and end and first_hours is not None:
        at = FirstCharge(begin.replace(tzinfo=UTC), end.replace(tzinfo=UTC), first_hours)
    return NodeCharge(
        instance=instance, pool=pools.get(pool, ""), category=category, timed=timed, covered=covered, rows=count,
        billed=billed, listed=listed, exact=exact, effective=effective, hours=hours,
        first=at, uncounted=uncounted,
    )  # fmt: skip


def _why_unread(error: Exception, files: Files) -> str:
    first = str(error).partition("\n")[0].replace(str(files.versions[0][0].parent), "")
    return f"cannot be read: {first[:200]}"


def _unread(why: str) -> Bill:
    return Bill(source=SOURCE, findings=(_finding(why),))


def _finding(message: str) -> Finding:
    return Finding(subject="export", code="bill-uncounted", message=message)
