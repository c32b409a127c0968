"""The table ``export`` of a FOCUS export's files in DuckDB: FOCUS's own names, versions numbered, tags' keys known."""

import gzip
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pilotlight.adapters.bills.focus_columns import (
    BINARY,
    MACHINE,
    POOL_TAGS,
    SMALL,
    TEAM_TAGS,
    Columns,
    own_name,
    quote_name,
    tag_keys_query,
    tag_names,
    tag_value,
    tags_of_list,
)
from pilotlight.adapters.bills.focus_query import VERSION

if TYPE_CHECKING:
    import duckdb

LOOKED_AT = 20_480 + 2_048
"""Lines by which DuckDB tells a text's dialect, and a chunk more."""
LONG_LINE = 2**16
SAMPLED_ROWS = 100_000
"""So many lines are looked at for how many texts of tags there are; of more texts each is read by its line."""


def open_export(
    db: "duckdb.DuckDBPyConnection", versions: Sequence[Sequence[Path]], texts: Mapping[str, str] = MappingProxyType({})
) -> Columns:
    """Make the table ``export`` of files; its columns with their types. A row of several versions knows its own.

    ``texts`` are places where a packed file's text lies unpacked."""
    names = [str(file) for version in versions for file in version]
    several = len(versions) > 1
    packed = [name for name in names if name.endswith(".parquet")]
    plain = [name for name in names if name not in packed]
    if packed:
        _view(db, db.read_parquet(packed, union_by_name=True, filename=several), "packed", as_text=bool(plain))
    if plain:
        _view(db, _csv(db, plain, texts, several=several), "plain")
    tables = [name for name, there in (("packed", packed), ("plain", plain)) if there]
    db.execute(f"CREATE OR REPLACE VIEW export AS {' UNION ALL BY NAME '.join(f'FROM {name}' for name in tables)}")
    relation = db.table("export")
    columns = Columns((name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True))
    _learn(db, packed, plain, columns)
    if several:
        db.execute("CREATE TEMP TABLE versions (file VARCHAR, n INTEGER)")
        rows = [[str(file), n] for n, version in enumerate(versions) for file in version]
        db.executemany("INSERT INTO versions VALUES (?, ?)", rows)
        db.execute("ALTER VIEW export RENAME TO files")
        db.execute(f"CREATE VIEW export AS SELECT files.*, n AS {VERSION} FROM files JOIN versions ON file = filename")
    return columns


def with_missing(db: "duckdb.DuckDBPyConnection", columns: Columns, missing: Sequence[str]) -> Columns:
    """The columns, and those that no bill can be read without: their lines are in doubt, another file's are not."""
    if not missing:
        return columns
    nothing = ", ".join(f"NULL::VARCHAR AS {quote_name(name)}" for name in missing)
    db.execute("ALTER VIEW export RENAME TO told")
    db.execute(f"CREATE VIEW export AS SELECT *, {nothing} FROM told")
    columns.update(dict.fromkeys(missing, "VARCHAR"))
    return columns


def with_tags(db: "duckdb.DuckDBPyConnection", columns: Columns, keys: Sequence[str] = ()) -> Columns:
    """The columns that know which keys their tags have. Where few texts of tags are there each is read once, and not
    once a line: ``keys`` are wanted beside those of teams and pools."""
    if not (asked := tag_keys_query(columns)):
        return columns
    few = columns["Tags"] in ("VARCHAR", "JSON") and _few_texts(db)
    columns.tags = frozenset(key for (key,) in db.execute(f"{asked} {'tagged' if few else 'export'}").fetchall())
    names = [name for name in tag_names([*TEAM_TAGS, *POOL_TAGS, *keys]) if name in columns.tags]
    if few and names:
        values = {name: tag_value(columns, name) for name in names}
        columns.told = {name: f"tag {n}" for n, name in enumerate(values)}
        told = ", ".join(f"{value} AS {quote_name(columns.told[name])}" for name, value in values.items())
        db.execute(f'CREATE OR REPLACE TEMP TABLE tags AS SELECT "Tags" AS text, {told} FROM tagged')
        db.execute("ALTER VIEW export RENAME TO untold")
        db.execute(
            'CREATE VIEW export AS SELECT untold.*, tags.* EXCLUDE text FROM untold LEFT JOIN tags ON "Tags" = text'
        )
    return columns


def _few_texts(db: "duckdb.DuckDBPyConnection") -> bool:
    """Whether tags are the same few texts again and again: then these are in the table ``tagged``."""
    from pilotlight.adapters.bills.duck import duckdb

    sample = f'SELECT count("Tags"), count(DISTINCT "Tags") FROM (SELECT "Tags" FROM export LIMIT {SAMPLED_ROWS})'
    rows, texts = db.execute(sample).fetchall()[0]
    if texts * 4 > rows:
        return False
    try:
        db.execute('CREATE OR REPLACE TEMP TABLE tagged AS SELECT DISTINCT "Tags" FROM export WHERE "Tags" IS NOT NULL')
    except duckdb.OutOfMemoryException:
        return False
    return bool(db.execute(f"SELECT count(*) <= {SAMPLED_ROWS} FROM tagged").fetchall()[0][0])


def _learn(db: "duckdb.DuckDBPyConnection", files: Sequence[str], others: Sequence[str], columns: Columns) -> None:
    """What Parquet files' statistics say of columns, where no others are read: texts that are in every line, and
    numbers that are all small. That no resource is a machine is seen by looking, up to the first that may be one."""
    if others:
        return
    asked = f"""SELECT path_in_schema, any_value(stats_min_value), sum(stats_null_count) = sum(row_group_num_rows),
            COALESCE(sum(stats_null_count) = 0
            AND count(stats_min_value) = count(*) AND count(stats_max_value) = count(*)
            AND min(stats_min_value) = max(stats_max_value) AND max(stats_min_value) = min(stats_max_value), false),
            bool_and(COALESCE(TRY_CAST(stats_min_value AS DOUBLE) >= -{SMALL}
            AND TRY_CAST(stats_max_value AS DOUBLE) <= {SMALL}, false))
        FROM parquet_metadata($files) GROUP BY path_in_schema
        HAVING sum(row_group_num_rows) = (SELECT sum(num_rows) FROM parquet_file_metadata($files))"""
    same, small = dict[str, str](), set[str]()
    for path, text, nothing, alike, few in db.execute(asked, {"files": list(files)}).fetchall():
        name = own_name(path)
        if columns.get(name) == "VARCHAR" and name != "Tags" and (nothing or alike):
            same[name] = "NULL" if nothing else "'{}'".format(text.replace("'", "''"))
        if few and columns.get(name) in BINARY:
            small.add(name)
    columns.same, columns.small = same, frozenset(small)
    if columns.get("ResourceId") == "VARCHAR":
        columns.machines = bool(db.execute(f"SELECT 1 FROM export WHERE {MACHINE} LIMIT 1").fetchall())


def _view(
    db: "duckdb.DuckDBPyConnection", rows: "duckdb.DuckDBPyRelation", name: str, *, as_text: bool = False
) -> None:
    """Make a view with FOCUS's own names; ``as_text`` with tags as a CSV has them, to stand beside one."""
    asked = []
    for column, kind in zip(rows.columns, map(str, rows.types), strict=True):
        own = own_name(column)
        value = quote_name(column)
        if own == "Tags" and kind == "VARCHAR":
            value = tags_of_list(value)
        elif own == "Tags" and as_text and (kind.startswith("MAP") or kind.endswith("[]")):
            value = f"map_from_entries({value})" if kind.endswith("[]") else value
            value = f"CAST(to_json({value}) AS VARCHAR)"
        asked.append(f"{value} AS {quote_name(own)}")
    rows.project(", ".join(asked)).create_view(name, replace=True)


def _csv(
    db: "duckdb.DuckDBPyConnection", names: Sequence[str], texts: Mapping[str, str], *, several: bool
) -> "duckdb.DuckDBPyRelation":
    told = {"header": True, "na_values": ["NULL", ""], "quotechar": '"', "escapechar": '"', "filename": several}
    told["comment"] = ""  # Else a line that begins with # is dropped in silence.
    found = {} if several else {repr(one): one for one in (_dialect(db, name, texts.get(name, "")) for name in names)}
    alike = next(iter(found.values())) if len(found) == 1 else None
    if alike is None:
        return db.read_csv(names, all_varchar=True, union_by_name=True, **told)  # type: ignore[arg-type]
    columns, delimiter = alike
    kinds = dict.fromkeys(columns, "VARCHAR")
    names = [texts.get(name, name) for name in names]
    return db.read_csv(names, auto_detect=False, columns=kinds, delimiter=delimiter, **told)  # type: ignore[arg-type]


def _dialect(db: "duckdb.DuckDBPyConnection", name: str, text: str) -> tuple[list[str], str] | None:
    """The columns of a text file and what stands between them, found out once: DuckDB would look again at each use.
    None for a file that does not begin with its header."""
    from pilotlight.adapters.bills.duck import duckdb

    asked = """SELECT Columns, Delimiter, SkipRows, HasHeader
        FROM sniff_csv($name, all_varchar=true, header=true, quote='"', escape='"', comment='')"""
    with _head(name, text) as head, suppress(duckdb.Error):
        return _told(db.execute(asked, {"name": head}).fetchall()[0])
    return _told(db.execute(asked, {"name": name}).fetchall()[0])


def _told(dialect: tuple[Any, ...]) -> tuple[list[str], str] | None:
    columns, delimiter, skipped, headed = dialect
    return ([one["name"] for one in columns], delimiter) if headed and not skipped else None


@contextmanager
def _head(name: str, place: str) -> Iterator[str]:
    """A file of as many of a text's first lines as DuckDB looks at: of a packed one it unpacks many more. Where lines
    end within quotes it is the text itself. ``place`` is where it lies unpacked, if it does."""
    lines = list[bytes]()
    if name.endswith(".gz"):
        with suppress(EOFError, OSError, zlib.error), open(place, "rb") if place else gzip.open(name) as text:
            lines = [text.readline(LONG_LINE) for _ in range(LOOKED_AT)]
    if not lines or any(line.count(b'"') % 2 or len(line) == LONG_LINE for line in lines):
        yield name
        return
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.writelines(lines)
        file.flush()
        yield file.name
