"""A FOCUS export (1.0 to 1.2, CSV or Parquet) as a bill, read by DuckDB. ``BilledCost`` is what sums.

What real exports do is taken as it is: ``NULL`` as text, times without a zone (UTC), columns more or fewer, tags as
JSON or as a map, and the whole written again beside the old. FOCUS: https://focus.finops.org/focus-specification
"""

import gc
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from pilotlight.adapters.bills.exports import Store, digest_of, list_files, local_files
from pilotlight.adapters.bills.focus_columns import Columns
from pilotlight.adapters.bills.focus_query import (
    CURRENCY,
    FEW_LINES,
    MOST_KEYS,
    MOST_LINES,
    MOST_NAMES,
    OTHERS,
    Detail,
    dear_query,
    keys_query,
    node_query,
    reach_query,
    sums_query,
)
from pilotlight.adapters.bills.focus_table import open_export, with_missing, with_tags
from pilotlight.adapters.bills.packed import CutOff, check_whole, unpack_texts
from pilotlight.decide.money.bills.bill_scope import Rules, join_files, scope_bill
from pilotlight.decide.money.bills.bill_versions import current_files
from pilotlight.decide.money.bills.versions_told import with_bases
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import Bill
from pilotlight.facts.money.bill_files import SAMPLED, BillFile, BillListing, DayKeys, Line
from pilotlight.facts.workload import Finding
from pilotlight.units import cents, shorten_figure

if TYPE_CHECKING:
    import duckdb

    from pilotlight.adapters.object_store import Objects
    from pilotlight.decide.money.invoice_proof import NodeBill, NodeCharge

NEEDED = ("BilledCost", "ChargePeriodStart", "ChargePeriodEnd")
MEMORY = "256MB"
KEYS = 2**32 - 1
"""The largest hash of a line."""
_AMOUNTS = frozenset({"usd", "effective", "listed"})
_SUMMED = _AMOUNTS | {"charges", "reach"}
_ONE_AT_A_TIME = Lock()
"""Several clusters of one process read one after another: memory is what one of them takes."""
SOURCE = "focus"
"""Wherever it lies: the same days under another address are not billed twice."""


def _objects() -> "Objects":
    from pilotlight.adapters.object_store import Objects

    return Objects()


class FocusBills:
    """The Bills port of an export; ``store`` gives what reads one that lies in a cloud's bucket."""

    def __init__(self, uri: str, rules: Rules, store: Store | None = None) -> None:
        self._uri, self._rules, self._store = uri, rules, cache(store or _objects)

    def files(self) -> BillListing:
        """The files that lie there. Their word is that of the rules, too."""
        found = list_files(self._uri, self._store)
        rules = blake2b(repr(self._rules).encode(), digest_size=8).hexdigest()
        return msgspec.structs.replace(found, word=f"{found.word} {SAMPLED.format} {rules}")

    def read(self, start: datetime, end: datetime) -> Bill:
        """The cluster's rows of the period by day, team, pool and service. A file that is no export is a finding.

        A row whose charge period is longer than a day, as a month's fee, belongs to the day on which it begins.
        """
        listing, read = self.files(), list[BillFile]()
        for group in listing.groups:
            read.append(self.read_file(listing, group, read, start, end))
        return self.join(listing, read, end)

    def read_file(
        self,
        listing: BillListing,
        group: Sequence[str],
        read: Sequence[BillFile],
        start: datetime,
        end: datetime,
        nodes: Sequence[str] | None = None,
    ) -> BillFile:
        """The sums of a file, or of a group, after those that are ``read``. Of machines those in ``nodes`` are told by
        name, or all."""
        with self._opened(group) as (db, files):
            from pilotlight.adapters.bills.duck import duckdb

            own = _once(listing, group[0], files, read)
            found = BillFile(word=listing.word, name=group[0], digests=frozenset(own))
            if not own:
                return found
            period = {"start": _plain(start), "end": _plain(end)} | ({} if nodes is None else {"nodes": nodes})
            try:
                with unpack_texts(list(own.values())) as texts:
                    columns = open_export(db, [list(own.values())], texts)
                    missing = tuple(column for column in NEEDED if column not in columns)
                    columns = with_tags(db, with_missing(db, columns, missing), _scope_keys(self._rules))
                    room = max(FEW_LINES, MOST_LINES - sum(len(one.lines) for one in read))
                    lines, folded = _lines(db, columns, self._rules, period, room)
                    keys = with_bases(_keys(db, columns, start), lines) if listing.several else {}
            except CutOff as error:
                return msgspec.structs.replace(found, unread=f"cannot be read: {error}")
            except duckdb.Error as error:
                return msgspec.structs.replace(found, unread=_why_unread(error, files[0]))
        return msgspec.structs.replace(found, lines=lines, keys=keys, missing=missing, folded=folded)

    def join(self, listing: BillListing, files: Sequence[BillFile], end: datetime) -> Bill:
        """The cluster's bill of all of a listing's files, up to ``end``."""
        if unread := [file.unread for file in files if file.unread]:
            return _unread(unread[0])
        own = [file for file in files if file.digests]
        if missing := [name for name in NEEDED if all(name in file.missing for file in own)]:
            return _unread(
                f"columns are missing: {', '.join(missing)}; export it as FOCUS, as AWS's own CUR is not read"
            )
        with _uncollected():
            lines, told = join_files(listing, files, end.astimezone(UTC).date())
            bill = scope_bill(SOURCE, lines, self._rules, end, dropped=listing.replaced)
        return msgspec.structs.replace(bill, findings=(*bill.findings, *told))

    def read_nodes(self, start: datetime, end: datetime) -> "NodeBill":
        """Charges of machines, of the whole days of a period that the export reaches. Raises ``BadInput``."""
        from pilotlight.decide.money.invoice_proof import NodeBill

        listing = self.files()
        with self._opened(listing.names) as (db, files):
            from pilotlight.adapters.bills.duck import duckdb

            try:
                check_whole(files)
                versions = _current(db, listing, files, start)
                columns = open_export(db, versions)
                if missing := [name for name in (*NEEDED, "ResourceId") if name not in columns]:
                    raise BadInput(f"the bill lacks columns: {', '.join(missing)}; export them too")
                period = {"start": _plain(start), "end": _plain(end)}
                found = db.execute(reach_query(columns), period).fetchone()
                if found is None or found[0] is None:
                    return NodeBill((), None)
                period["end"] = datetime(found[0].year, found[0].month, found[0].day)  # noqa: DTZ001  As DuckDB has it.
                rows = db.execute(node_query(with_tags(db, columns), several=len(versions) > 1), period).fetchall()
            except CutOff as error:
                raise BadInput(f"the bill cannot be read: {error}") from None
            except duckdb.Error as error:
                raise BadInput(f"the bill {_why_unread(error, files[0])}; look at PILOTLIGHT_BILLS") from None
        if others := sorted({row[2] or "several currencies, none told for machines" for row in rows} - {CURRENCY}):
            raise BadInput(f"the bill is in {', '.join(others)}: a proof needs one in dollars")
        charges = tuple(_charge(row, self._rules.pools) for row in rows)
        return NodeBill(charges, period["end"].replace(tzinfo=UTC))

    @contextmanager
    def _opened(self, names: Sequence[str]) -> "Iterator[tuple[duckdb.DuckDBPyConnection, list[Path]]]":
        try:
            from pilotlight.adapters.bills.duck import duckdb
        except ImportError:
            raise BadInput("focus needs the package duckdb; run pip install 'pilotlight[bills]'") from None
        with (
            _ONE_AT_A_TIME,
            _uncollected(),
            local_files(names, self._store) as files,
            duckdb.connect(
                config={"threads": 1, "memory_limit": MEMORY, "temp_directory": tempfile.gettempdir()}
            ) as db,
        ):
            db.execute("SET TimeZone='UTC'; SET preserve_insertion_order=false; SET enable_progress_bar=false")
            yield db, files


@contextmanager
def _uncollected() -> Iterator[None]:
    """Lines are many objects, and none of them in a cycle: nothing is collected while they are made."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _scope_keys(rules: Rules) -> tuple[str, ...]:
    return tuple(rules.scope.tags) if rules.scope else ()


def _lines(
    db: "duckdb.DuckDBPyConnection", columns: Columns, rules: Rules, period: dict[str, Any], room: int
) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """The sums of a file, with as much detail as there is room for, and a sentence on what was folded."""
    from pilotlight.adapters.bills.duck import duckdb

    details: tuple[Detail, ...] = ("all", "names", "least")
    for detail in details:
        if detail == "names":
            db.execute(dear_query(columns))
        try:
            db.execute(sums_query(columns, rules, detail, some="nodes" in period), period)
        except duckdb.OutOfMemoryException:
            if detail == "least":
                raise
            continue
        count = db.execute("SELECT count(*) FROM sums").fetchone()
        if count is None or count[0] <= room:
            break
    folded: tuple[str, ...] = ()
    if detail != "all":
        usd = db.execute(f"SELECT sum(usd) FROM sums WHERE team = '{OTHERS}'").fetchone()
        folded = (
            f"the bill has more than {MOST_LINES:,} groups of lines: {MOST_NAMES:,} teams, services and accounts keep "
            f"their names, the others are {OTHERS}; {cents((usd and usd[0]) or Decimal(0))} is of no team by name",
        )
    return _told(db), folded


def _told(db: "duckdb.DuckDBPyConnection") -> tuple[Line, ...]:
    """Lines of the table ``sums``. What all say alike is handed over once, amounts as text: both cost less."""
    first = db.execute("FROM sums LIMIT 1").fetchone()
    if first is None:
        return ()
    names = db.table("sums").columns
    alike = ", ".join(f"count({name}) = 0 OR min({name}) = max({name}) AND count({name}) = count(*)" for name in names)
    same = db.execute(f"SELECT {alike} FROM sums").fetchall()[0]
    varied = [name for name, alike in zip(names, same, strict=True) if not alike] or ["day"]
    asked = ", ".join(f"CAST({name} AS VARCHAR)" if name in _AMOUNTS else name for name in varied)
    rows = db.execute(f"SELECT {asked} FROM sums ORDER BY {_order(varied)}").fetchall()
    told: dict[str, Iterable[Any]] = {name: [value] * len(rows) for name, value in zip(names, first, strict=True)}
    told |= zip(varied, zip(*rows, strict=True), strict=True)
    for name in _AMOUNTS & {*varied}:
        told[name] = [text and Decimal(text) for text in told[name]]
    told["tags"] = map(tuple, told["tags"])
    zoned = {at: at and at.replace(tzinfo=UTC) for at in set(told["reach"])}
    told["reach"] = map(zoned.__getitem__, told["reach"])
    return tuple(map(Line._make, zip(*told.values(), strict=True)))


def _order(names: Sequence[str]) -> str:
    """Lines by all that they tell, but for sums at the end: they differ in what stands before."""
    last = max((n for n, name in enumerate(names) if name not in _SUMMED), default=0)
    return ", ".join(f"sums.{name}" for name in names[: last + 1])


def _keys(db: "duckdb.DuckDBPyConnection", columns: Columns, start: datetime) -> dict[str, DayKeys]:
    """Each day's lines, as they are told apart from another version's."""
    db.execute(keys_query(columns), {"start": _plain(start)})
    days = db.execute("SELECT day, sum(lines), sum(usd), count(*) FROM line GROUP BY day").fetchall()
    most = max(1, MOST_KEYS // max(1, len(days)))
    out: dict[str, DayKeys] = {}
    for day, lines, usd, keys in days:
        cut = KEYS if keys <= most else KEYS * most // keys
        asked = 'SELECT key, service, "of", "sum", lines FROM line WHERE day = $day AND key <= $cut'
        rows = sorted(db.execute(asked, {"day": day, "cut": cut}).fetchall())
        sample = b"".join(SAMPLED.pack(*told, min(count, 0xFFFF)) for *told, count in rows)
        out[day.isoformat()] = DayKeys(lines=int(lines), usd=usd or Decimal(0), cut=cut, sample=sample)
    return out


def _current(
    db: "duckdb.DuckDBPyConnection", listing: BillListing, files: Sequence[Path], start: datetime
) -> list[list[Path]]:
    """The files that count, apart where days of one do not, and the table ``dropped`` of these, by their number."""
    at = dict(zip(listing.names, files, strict=True))
    read, own = list[BillFile](), dict[str, list[Path]]()
    for group in listing.groups:
        held = _once(listing, group[0], [at[name] for name in group], read)
        own[group[0]] = list(held.values())
        keys: dict[str, DayKeys] = {}
        if held and listing.several:
            columns = open_export(db, [own[group[0]]])
            keys = _keys(db, with_missing(db, columns, [one for one in NEEDED if one not in columns]), start)
        read.append(BillFile(word=listing.word, name=group[0], digests=frozenset(held), keys=keys))
    versions, gone, _ = current_files(listing, read)
    db.execute("CREATE TEMP TABLE dropped (day DATE, version INTEGER)")
    names = [one.name for version in versions for one in version]
    if not gone:
        return [[file for name in names for file in own[name]]]
    db.executemany("INSERT INTO dropped VALUES (?, ?)", [[day, names.index(name)] for name, day in gone])
    return [own[name] for name in names]


def _once(listing: BillListing, name: str, files: Sequence[Path], read: Sequence[BillFile]) -> dict[str, Path]:
    """Files by what is in them, without those that their version has already."""
    if len(listing.names) == 1:  # Nothing stands beside it.
        return {listing.word: files[0]}
    beside = listing.version_of(name)
    seen = {digest for one in read if one.name in beside for digest in one.digests}
    return {digest: file for file in reversed(files) if (digest := digest_of(file)) not in seen}


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


def _why_unread(error: Exception, file: Path) -> str:
    first = str(error).partition("\n")[0].replace(str(file.parent), "")
    packed = "; a .zst must hold text in UTF-8: write it so, or packed by gzip" * file.name.endswith(".zst")
    return f"cannot be read: {first[:200]}{packed}"


def _unread(why: str) -> Bill:
    return Bill(source=SOURCE, findings=(_finding(why),))


def _finding(message: str) -> Finding:
    return Finding(subject="export", code="bill-uncounted", message=message)
