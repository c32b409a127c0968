"""Month to date by team over a large FOCUS export: this product's reader against pandas, each in a process of its own.

Usage: python bench/money/bench_bills.py [ROWS] (10,000,000). pandas is put into build/bench-venv when it is not there
yet. Prints CPU seconds and peak memory (median of three), and the ratios: CPU at most 1/4, memory at most 1/5.
"""

import statistics
import subprocess
import sys
import venv
from ast import literal_eval
from math import isclose
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
ROUNDS = 3
MOST_CPU, MOST_MEMORY = 0.25, 0.20

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
import pandas
columns = ["BilledCost", "ChargePeriodStart", "ChargePeriodEnd", "BillingCurrency", "x_team"]
frame = pandas.read_parquet({file!r}, columns=columns)
frame = frame[(frame.ChargePeriodStart >= "2026-11-01") & (frame.ChargePeriodStart < "2026-12-01")]
frame = frame[frame.BillingCurrency == "USD"]
teams = frame.groupby("x_team").BilledCost.sum().to_dict()
"""
TOLD = "\nprint({team: round(float(usd), 2) for team, usd in sorted(teams.items())})\n"


def main() -> None:
    """Make the export, run both in turns, print medians and ratios; exit 1 where a ratio is too large."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    file = _export(rows)
    peer = _peer()
    results: dict[str, list[tuple[float, float]]] = {"pilotlight": [], "pandas": []}
    said: dict[str, str] = {}
    for _ in range(ROUNDS):
        for name, python, code in (("pilotlight", Path(sys.executable), OURS), ("pandas", peer, PANDAS)):
            cpu, memory, said[name] = _run(python, code.format(file=str(file)) + TOLD)
            results[name].append((cpu, memory))
    medians = {name: [statistics.median(column) for column in zip(*got, strict=True)] for name, got in results.items()}
    for name, (cpu, memory) in medians.items():
        print(f"{name:<11} {cpu:6.2f} s CPU  {memory:7.0f} MB peak  over {rows:,} rows")
    cpu, memory = (ours / theirs for ours, theirs in zip(medians["pilotlight"], medians["pandas"], strict=True))
    print(f"ratio       {cpu:6.3f} of the CPU (at most {MOST_CPU})  {memory:.3f} of the memory (at most {MOST_MEMORY})")
    ours, theirs = (literal_eval(said[name]) for name in ("pilotlight", "pandas"))
    # pandas adds binary floats; ours are decimals.
    same = ours.keys() == theirs.keys() and all(isclose(ours[t], theirs[t], rel_tol=1e-9) for t in ours)
    print(f"same sums: {same}")
    sys.exit(cpu > MOST_CPU or memory > MOST_MEMORY or not same)


def _run(python: Path, code: str) -> tuple[float, float, str]:
    """CPU seconds and peak megabytes of a process, and what it printed."""
    measured = code + (
        "\nimport resource\nused = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)\n"
    )
    out = subprocess.run([python, "-c", measured], check=True, capture_output=True, text=True).stdout.splitlines()
    cpu, memory = map(float, out[-1].split())
    return cpu, memory, out[-2]


def _export(rows: int) -> Path:
    """A month and a half of hourly rows of twenty teams, flat, as exports with allocation columns are."""
    import duckdb

    file = BUILD / f"focus-{rows}.parquet"
    BUILD.mkdir(exist_ok=True)
    if not file.exists():
        duckdb.sql(
            f"""COPY (SELECT
                (hash(i) % 10000)::DECIMAL(18, 6) / 100 AS BilledCost, 'USD' AS BillingCurrency,
                'Usage' AS ChargeCategory, 'Amazon Elastic Compute Cloud' AS ServiceName,
                TIMESTAMP '2026-10-15' + INTERVAL 1 HOUR * (i % 1080) AS ChargePeriodStart,
                TIMESTAMP '2026-10-15' + INTERVAL 1 HOUR * (i % 1080 + 1) AS ChargePeriodEnd,
                'i-' || (hash(i + 1) % 5000) AS ResourceId, 'team-' || (hash(i + 2) % 20) AS x_team
            FROM range({rows}) t(i)) TO '{file}' (FORMAT PARQUET)"""
        )
    return file


def _peer() -> Path:
    python = BUILD / "bench-venv" / "bin" / "python"
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "pandas", "pyarrow"], check=True)
    return python


if __name__ == "__main__":
    main()
