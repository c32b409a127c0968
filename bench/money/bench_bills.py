"""Month to date by team over large FOCUS exports: this product's reader against pandas, each in a process of its own.

Usage: python bench/money/bench_bills.py [--only parquet csv.gz tags] [--rows 10000000]
``parquet``: flat columns of 20 teams; ``csv.gz``: a tenth of the rows as text; ``tags``: a tenth of them in Parquet,
with 2,000 teams in tags of JSON. pandas is put into build/bench-venv when it is not there yet. Prints CPU seconds and
peak memory (median of three), with both ratios; exits 1 where one is over its limit.
"""

import argparse
import statistics
import subprocess
import sys
import venv
from ast import literal_eval
from math import isclose
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
ROUNDS = 3

OURS = """
from datetime import datetime, UTC
from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
bill = FocusBills({file!r}, Rules()).read(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
teams = {{}}
for row in bill.days:
    teams[row.team] = teams.get(row.team, 0) + row.usd
"""
PANDAS = """
import json
import pandas
columns = ["BilledCost", "ChargePeriodStart", "ChargePeriodEnd", "BillingCurrency", {team!r}]
frame = pandas.{read}({file!r}, {columns}=columns)
frame = frame[(frame.ChargePeriodStart >= "2026-11-01") & (frame.ChargePeriodStart < "2026-12-01")]
frame = frame[frame.BillingCurrency == "USD"]
teams = frame.groupby({by}).BilledCost.sum().to_dict()
"""
TOLD = "\nprint({team: round(float(usd), 2) for team, usd in sorted(teams.items())})\n"


class Row(NamedTuple):
    """A measurement: its rows by those asked for, its team as DuckDB writes it, how pandas reads it, and its limits."""

    by: int = 1
    team: str = "'team-' || (hash(i + 2) % 20) AS x_team"
    format: str = "FORMAT PARQUET"
    read: str = "read_parquet"
    columns: str = "columns"
    grouped: str = "frame.x_team"
    most_cpu: float = 0.25
    most_memory: float = 0.20


ROWS = {
    "parquet": Row(),
    "csv.gz": Row(
        10, format="FORMAT CSV, HEADER, COMPRESSION GZIP", read="read_csv", columns="usecols", most_cpu=0.8,
        most_memory=0.8,
    ),
    "tags": Row(
        10, "json_object('team', 'team-' || (hash(i + 2) % 2000), 'env', 'env-' || (i % 7)) AS Tags",
        grouped='frame.Tags.map(lambda tags: json.loads(tags)["team"])', most_memory=0.8,
    ),
}  # fmt: skip


def main() -> int:
    """Make the exports, run both in turns, print medians and ratios; 1 where a ratio is too large."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), help="rows by name")
    words.add_argument("--rows", type=int, default=10_000_000, help="rows of the largest")
    asked = words.parse_args()
    peer = _peer()
    missed = [name for name in asked.only if not _row(name, asked.rows // ROWS[name].by, peer)]
    print(f"MISSED: {', '.join(missed)}" if missed else "every limit is met")
    return int(bool(missed))


def _row(name: str, rows: int, peer: Path) -> bool:
    row, file = ROWS[name], str(_export(name, rows))
    team = row.grouped.split(".")[1]
    theirs = PANDAS.format(file=file, team=team, read=row.read, columns=row.columns, by=row.grouped)
    runs = {"pilotlight": (Path(sys.executable), OURS.format(file=file)), "pandas": (peer, theirs)}
    results: dict[str, list[tuple[float, float]]] = {which: [] for which in runs}
    said: dict[str, str] = {}
    for _ in range(ROUNDS):
        for which, (python, code) in runs.items():
            cpu, memory, said[which] = _run(python, code + TOLD)
            results[which].append((cpu, memory))
    medians = {which: [statistics.median(each) for each in zip(*got, strict=True)] for which, got in results.items()}
    for which, (cpu, memory) in medians.items():
        print(f"{name:8} {which:<11} {cpu:6.2f} s CPU  {memory:7.0f} MB peak  over {rows:,} rows")
    cpu, memory = (ours / theirs for ours, theirs in zip(medians["pilotlight"], medians["pandas"], strict=True))
    print(
        f"{name:8} ratio       {cpu:6.3f} of the CPU (at most {row.most_cpu})  {memory:.3f} of the memory"
        f" (at most {row.most_memory})"
    )
    ours, others = (literal_eval(said[which]) for which in ("pilotlight", "pandas"))
    # pandas adds binary floats; ours are decimals.
    same = ours.keys() == others.keys() and all(isclose(ours[t], others[t], rel_tol=1e-9) for t in ours)
    print(f"{name:8} same sums: {same}", flush=True)
    return cpu <= row.most_cpu and memory <= row.most_memory and same


def _run(python: Path, code: str) -> tuple[float, float, str]:
    """CPU seconds and peak megabytes of a process, and what it printed."""
    measured = code + (
        "\nimport resource\nused = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)\n"
    )
    out = subprocess.run([python, "-c", measured], check=True, capture_output=True, text=True).stdout.splitlines()
    cpu, memory = map(float, out[-1].split())
    return cpu, memory, out[-2]


def _export(name: str, rows: int) -> Path:
    """A month and a half of hourly rows."""
    import duckdb

    file = BUILD / f"focus-{name.split('.')[0]}-{rows}.{name if name != 'tags' else 'parquet'}"
    BUILD.mkdir(exist_ok=True)
    if not file.exists():
        duckdb.sql(
            f"""COPY (SELECT
                (hash(i) % 10000)::DECIMAL(18, 6) / 100 AS BilledCost, 'USD' AS BillingCurrency,
                'Usage' AS ChargeCategory, 'Amazon Elastic Compute Cloud' AS ServiceName,
                TIMESTAMP '2026-10-15' + INTERVAL 1 HOUR * (i % 1080) AS ChargePeriodStart,
                TIMESTAMP '2026-10-15' + INTERVAL 1 HOUR * (i % 1080 + 1) AS ChargePeriodEnd,
                'i-' || (hash(i + 1) % 5000) AS ResourceId, {ROWS[name].team}
            FROM range({rows}) t(i)) TO '{file}' ({ROWS[name].format})"""
        )
    return file


def _peer() -> Path:
    python = BUILD / "bench-venv" / "bin" / "python"
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "pandas", "pyarrow"], check=True)
    return python


if __name__ == "__main__":
    sys.exit(main())
