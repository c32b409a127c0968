"""Peak memory of reading a large FOCUS export: Parquet, CSV.gz, each written again beside the old one, and apart.

One row is an hour of one of 4,167 nodes; each node is one team's, pool's and account's. ``apart``: each row has a
machine and a team of its own, so that no two of them are alike; in one file and in 15.

Usage: python bench/money/bill_memory.py [ROWS] (3,000,000) [--only parquet|csv.gz|apart]. CSV.gz takes minutes, and
written again up to half an hour on a busy machine. Each reading is a process of its own, whose peak resident
memory (``ru_maxrss``, in MB) and seconds are printed with its dollars. Exit 1 where one is above 512 MB, or its dollars
are not those that DuckDB sums by itself.
"""

import argparse
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

MOST_MB = 512
FILES = 15
FORMATS = {"parquet": "FORMAT PARQUET", "csv.gz": "FORMAT CSV, HEADER, COMPRESSION GZIP"}
READ = """
import resource, time
from datetime import datetime, UTC
from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.decide.money.bills.bill_scope import Rules
began = time.monotonic()
bill = FocusBills({uri!r}, Rules()).read(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
told = ("groups of lines",) if {apart} else ("apart", "$0.00 is of no team by name")
assert not [one for one in bill.findings if not any(words in one.message for words in told)], bill.findings[:3]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(peak, time.monotonic() - began, sum(row.usd for row in bill.days))
"""
ROWS = """SELECT ((hash(i) % 10000 + {more}) / 100)::DECIMAL(18, 6) AS BilledCost, BilledCost AS EffectiveCost,
    BilledCost * 2 AS ListCost, 'USD' AS BillingCurrency, 'Usage' AS ChargeCategory, NULL::VARCHAR AS ChargeClass,
    'Amazon Elastic Compute Cloud' AS ServiceName, 'acct-' || (i // 720 % 40) AS SubAccountId,
    TIMESTAMP '2026-11-01' + INTERVAL 1 HOUR * (i % 720) AS ChargePeriodStart,
    TIMESTAMP '2026-11-01' + INTERVAL 1 HOUR * (i % 720 + 1) AS ChargePeriodEnd,
    'i-0' || lpad((i // 720)::VARCHAR, 8, '0') AS ResourceId, 'p5.48xlarge per hour' AS ChargeDescription,
    NULL::VARCHAR AS CommitmentDiscountId, NULL::VARCHAR AS CommitmentDiscountStatus,
    {tags} AS Tags FROM range({rows}) t(i)"""
TAGS = {
    "parquet": "MAP {'team': 'team-' || (i // 720 % 20), 'eks:nodegroup-name': 'pool-' || (i // 720 % 9)}",
    "csv.gz": "json_object('team', 'team-' || (i // 720 % 20), 'eks:nodegroup-name', 'pool-' || (i // 720 % 9))",
}


APART = (
    ("lpad((i // 720)::VARCHAR, 8, '0')", "lpad(i::VARCHAR, 8, '0')"),
    ("'team-' || (i // 720 % 20)", "'team-' || i"),
)


def main() -> None:
    """Write, read and judge all six."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("rows", type=int, nargs="?", default=3_000_000)
    options.add_argument("--only", choices=[*FORMATS, "apart"])
    asked = options.parse_args()
    rows, bad = asked.rows, 0
    for name in [one for one in FORMATS if asked.only in (None, one)]:
        with tempfile.TemporaryDirectory() as folder:
            for again in (0, 1):
                whole = _write(Path(folder) / f"bill-2026-12-0{1 + again}.{name}", name, rows, again)
                peak, seconds, usd = _read(f"{folder}/*.{name}")
                ok = peak <= MOST_MB and Decimal(usd) == whole
                bad += not ok
                what = f"{name}, written again" if again else name
                print(
                    f"{what:<24} {rows * (1 + again):>10,} rows  {peak:6.0f} MB  {seconds:6.1f} s  ${usd}", flush=True
                )
    for files in (1, FILES) if asked.only in (None, "apart") else ():
        with tempfile.TemporaryDirectory() as folder:
            whole = _write(Path(folder), "parquet", rows, 0, files=files)
            peak, seconds, usd = _read(f"{folder}/*.parquet", apart=True)
            bad += not (peak <= MOST_MB and Decimal(usd) == whole)
            what = f"parquet, apart in {files}"
            print(f"{what:<24} {rows:>10,} rows  {peak:6.0f} MB  {seconds:6.1f} s  ${usd}", flush=True)
    print(f"at most {MOST_MB} MB and equal dollars: {'no' if bad else 'yes'}")
    sys.exit(bad > 0)


def _write(file: Path, name: str, rows: int, more: int, *, files: int = 0) -> Decimal:
    """Write an export, whose lines are ``more`` cents dearer, and sum its dollars, in a process of its own.

    With ``files`` its rows are apart, and lie in so many files of a folder.
    """
    made = ROWS.format(more=more, tags=TAGS[name], rows=rows)
    for was, now in APART if files else ():
        made = made.replace(was, now)
    each, whole = rows // max(1, files), f"range({rows})"
    parts = {str(file): made}
    if files:
        parts = {
            f"{file}/bill-{n}.{name}": made.replace(whole, f"range({n * each}, {(n + 1) * each})") for n in range(files)
        }
    code = f"""
import duckdb
duckdb.sql("SET memory_limit='1GB'; SET enable_progress_bar=false")
usd = 0
for file, made in {parts!r}.items():
    duckdb.sql(f"COPY ({{made}}) TO '{{file}}' ({FORMATS[name]})")
    usd += duckdb.sql(f"SELECT sum(BilledCost) FROM ({{made}})").fetchone()[0]
print(usd)
"""
    return Decimal(_out(code)[0])


def _read(uri: str, *, apart: bool = False) -> tuple[float, float, str]:
    peak, seconds, usd = _out(READ.format(uri=uri, apart=apart))
    return float(peak), float(seconds), usd


def _out(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()


if __name__ == "__main__":
    main()
