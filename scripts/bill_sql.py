"""Compile the SQL of bills to the dialects of BigQuery and Athena, beside its source.

Usage: python scripts/bill_sql.py [--check]. ``--check`` writes nothing, and ends with 1 where what lies there is not
what the source comes to.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import sqlglot
from sqlglot import exp

BILLS = Path(__file__).resolve().parents[1] / "shared" / "pilotlight" / "adapters" / "bills"
SOURCE = BILLS / "focus.sql"
HEAD = "-- Compiled from focus.sql by scripts/bill_sql.py: change that one.\n"


def _of_list(node: exp.Expression) -> exp.Expression:
    """BigQuery has tags as a list of keys and values, a wide decimal of its own, and seconds under another name."""
    if isinstance(node, exp.Bracket):
        return sqlglot.parse_one(
            f"(SELECT MAX(tag.value) FROM UNNEST(Tags) AS tag WHERE tag.key = {node.expressions[0].sql()})", "bigquery"
        )
    if isinstance(node, exp.DataType) and node.is_type("decimal"):
        return exp.DataType.build("BIGNUMERIC(38, 12)", dialect="bigquery")
    if isinstance(node, exp.TimeToUnix):
        return exp.Anonymous(this="UNIX_SECONDS", expressions=[node.this])
    return node


def _of_map(node: exp.Expression) -> exp.Expression:
    """Athena has tags as a map, of which a key that is not there is an error unless it is asked for like this."""
    if isinstance(node, exp.Bracket):
        return exp.Anonymous(this="ELEMENT_AT", expressions=[node.this, node.expressions[0]])
    return node


DIALECTS: Mapping[str, Callable[[exp.Expression], exp.Expression]] = {"bigquery": _of_list, "athena": _of_map}


def compiled(dialect: str) -> str:
    """The source in another dialect."""
    tree = sqlglot.parse_one(SOURCE.read_text(), "duckdb").transform(DIALECTS[dialect])
    return f"{HEAD}{tree.sql(dialect, pretty=True, comments=False)}\n"


def file_of(dialect: str) -> Path:
    """Where it lies."""
    return SOURCE.with_suffix(f".{dialect}.sql")


def main() -> None:
    """Write what is compiled, or compare it."""
    for dialect in DIALECTS:
        text, file = compiled(dialect), file_of(dialect)
        if "--check" not in sys.argv:
            file.write_text(text)
        elif file.read_text() != text:
            raise SystemExit(f"error: {file.name} is not what focus.sql comes to; run python scripts/bill_sql.py")


if __name__ == "__main__":
    main()
