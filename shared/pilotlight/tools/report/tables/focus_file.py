"""Rows of FOCUS 1.2 as a file: CSV, or Parquet with the specification's types, which DuckDB writes of the same CSV."""

import csv
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pilotlight.errors import BadInput, Failed
from pilotlight.tools.report.tables.focus_rows import COLUMNS, Kind

FORMS = (".csv", ".parquet")
TYPES: Mapping[Kind, str] = {"text": "VARCHAR", "decimal": "DECIMAL(38, 12)", "time": "TIMESTAMPTZ"}


def write_focus_file(path: Path, rows: Iterable[Mapping[str, str]]) -> int:
    """Write rows, and say how many. What stood there stands until the file is whole.

    Raises ``BadInput`` for another ending and without DuckDB, ``Failed`` where the file cannot be written.
    """
    check_form(path)
    plain, packed = (path.with_name(f".{path.name}.{os.getpid()}{form}") for form in FORMS)
    try:
        count = _write_csv(plain, rows)
        if path.suffix.lower() == ".parquet":
            _pack(plain, packed)
            packed.replace(path)
        else:
            plain.replace(path)
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}; name a file that can be written") from None
    finally:
        for part in (plain, packed):
            with suppress(OSError):
                part.unlink()
    return count


def check_form(path: Path) -> None:
    """Raise ``BadInput`` for a file of another kind, and for Parquet without DuckDB."""
    if path.suffix.lower() not in FORMS:
        raise BadInput(f"--focus {path}: end the file's name with .csv or .parquet")
    if path.suffix.lower() == ".parquet":
        try:
            import duckdb  # noqa: F401
        except ImportError:
            raise BadInput("Parquet needs the package duckdb; run pip install 'pilotlight[bills]'") from None


def _write_csv(path: Path, rows: Iterable[Mapping[str, str]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            count += 1
    return count


def _pack(plain: Path, packed: Path) -> None:
    import duckdb

    with duckdb.connect(config={"threads": 1}) as db:
        db.execute("SET TimeZone='UTC'")
        types = {name: TYPES[kind] for name, kind in COLUMNS.items()}
        rows = db.read_csv(str(plain), header=True, columns=types, quotechar='"', escapechar='"', na_values=[""])
        rows.write_parquet(str(packed), compression="zstd")
